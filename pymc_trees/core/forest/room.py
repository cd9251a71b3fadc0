"""Room for the rows of nodes, as bits."""

import mmap

import numpy as np


def make_room(rows: int, columns: int) -> np.ndarray:
    """(rows, columns) uint64 of zeros, of which only what is written to takes memory.

    On a million rows the sets of all nodes that a pool has room for would take some ten gigabytes,
    where a few hundred megabytes are used: from Python 3.13 on, Linux is asked not to count the
    rest.
    """
    n_bytes = 8 * rows * columns
    if n_bytes < 2**24 or not hasattr(mmap, "MAP_NORESERVE"):
        return np.zeros((rows, columns), dtype=np.uint64)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_NORESERVE
    return np.frombuffer(mmap.mmap(-1, n_bytes, flags=flags), np.uint64).reshape(rows, columns)
