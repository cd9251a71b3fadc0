"""Room for the rows of nodes, as bits."""

import mmap
import platform
import sys

import numpy as np

_GENERIC = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if _GENERIC else None)
"""Linux's flag for memory that is not promised; Python has a name for it from 3.13 on."""


def make_room(rows: int, columns: int) -> np.ndarray:
    """(rows, columns) uint64 of zeros, of which only what is written to takes memory.

    On a million rows the sets of all nodes that a pool has room for would take some ten gigabytes,
    where a few hundred megabytes are used, and on ten million rows more than a machine has: Linux
    is asked not to count the rest.
    """
    n_bytes = 8 * rows * columns
    if n_bytes < 2**24 or NORESERVE is None:
        return np.zeros((rows, columns), dtype=np.uint64)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE
    return np.frombuffer(mmap.mmap(-1, n_bytes, flags=flags), np.uint64).reshape(rows, columns)
