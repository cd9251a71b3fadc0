"""Tables of inputs stored in a file, read in blocks of rows.

Inputs are read when a forest is declared and when a step method is created, and rarely after that.
A table in a file takes memory only while it is read, and the operating system reclaims that memory
when needed.
"""

import mmap
import tempfile
from collections.abc import Iterable, Iterator

import numpy as np

BLOCK_BYTES = 2**26
"""Bytes of a block of rows, as float64."""
COLUMN_BYTES = 2**30
"""Bytes of the columns that are read from a file at once."""


class FileTable(np.ndarray):
    """(n, p) float64 array stored in an unnamed temporary file.

    Deep copies and copies by ``astype`` are the same table, which is read-only. A pickle contains
    the numbers; unpickling writes them to another file. Slices and results of computations are
    ordinary arrays.
    """

    source: mmap.mmap | None = None
    """The file; None for arrays in memory that NumPy derives from this class."""

    def __array_finalize__(self, obj):
        self.source = None

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return array[()] if return_scalar else np.asarray(array)

    def __getitem__(self, key):
        return np.asarray(self)[key]

    def astype(self, dtype, *args, **kwargs):
        """As for arrays, but a cast to its own dtype returns the same table."""
        same = self.source is not None and np.dtype(dtype) == self.dtype
        return self if same else np.asarray(self).astype(dtype, *args, **kwargs)

    def __deepcopy__(self, memo):
        return np.array(self) if self.source is None else self

    def __reduce_ex__(self, protocol):
        if self.source is None:
            return np.asarray(self).__reduce_ex__(protocol)
        return write_table, (self.shape[1], [block.tobytes() for _, block in row_blocks(self)])


def write_table(p: int, blocks: Iterable) -> FileTable:
    """Table of p columns from successive blocks of rows: C-contiguous float64, or their bytes.

    Raises
    ------
    OSError
        If the disk is too full for the file.
    """
    with tempfile.TemporaryFile(prefix="pymc_trees") as file:
        for block in blocks:
            file.write(memoryview(block).cast("B"))
        if file.tell() == 0:
            return np.empty((0, p)).view(FileTable)
        file.flush()
        # shared: memory that is the file's own does not count as promised to this process
        source = mmap.mmap(file.fileno(), file.tell())
    table = np.frombuffer(source, dtype=np.float64).reshape(-1, p).view(FileTable)
    table.source = source
    return table


def in_file(X) -> bool:
    """Whether an array is stored in a file."""
    return isinstance(X, FileTable) and X.source is not None


def row_blocks(X: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Iterate over an (n, p) array in blocks of rows: slice and block.

    The pages of a table in a file are released after each block.
    """
    n, p = X.shape
    step = max(1, BLOCK_BYTES // (8 * max(p, 1)))
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        yield rows, X[rows]
        release_pages(X)


def release_pages(X: np.ndarray) -> None:
    """Release the pages of a table in a file from this process's memory; the file keeps them."""
    if in_file(X) and hasattr(X.source, "madvise") and hasattr(mmap, "MADV_DONTNEED"):
        X.source.madvise(mmap.MADV_DONTNEED)


def each_column(X: np.ndarray) -> Iterator[np.ndarray]:
    """Iterate over the columns of an (n, p) array; a file is read several columns at a time."""
    if not in_file(X):
        yield from X.T
        return
    n, p = X.shape
    n_together = max(1, COLUMN_BYTES // (8 * max(n, 1)))
    for first in range(0, p, n_together):
        part = np.empty((min(n_together, p - first), n))
        for rows, block in row_blocks(X):
            part[:, rows] = block[:, first : first + n_together].T
        yield from part
