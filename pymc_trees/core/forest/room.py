"""Memory for the rows of nodes, as bits."""

import mmap
import platform
import sys

import numpy as np

_GENERIC = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if _GENERIC else None)
"""Linux's flag MAP_NORESERVE; Python has a name for it from 3.13 on."""


def make_room(rows: int, columns: int) -> np.ndarray:
    """(rows, columns) uint64 zeros; only pages that are written to take memory.

    On large tables the sets of all nodes that fit the pool would take far more memory than those in
    use, and more than a machine has: Linux is told not to reserve the rest.
    """
    n_bytes = 8 * rows * columns
    if n_bytes < 2**24 or NORESERVE is None:
        return np.zeros((rows, columns), dtype=np.uint64)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE
    return np.frombuffer(mmap.mmap(-1, n_bytes, flags=flags), np.uint64).reshape(rows, columns)
