"""Large tables of numbers that are not float64 in memory, read by rows and kept in a file.

So a file is never in memory as a whole, and numbers of four bytes do not come to take eight there.
"""

import tempfile
from typing import Any

import numpy as np

from pymc_trees.core.columns.mixed import MISSING
from pymc_trees.core.columns.table_file import BLOCK, FileTable, in_file, write_table
from pymc_trees.distributions.data.numbers import check_finite, is_lazy, matrix_of_reals

LARGE = 2**28
"""Bytes as float64 beyond which a table is kept in a file."""


def is_large(X: Any) -> bool:
    """Whether X is such a table: an array, what has rows like one, or a lazy frame."""
    if is_lazy(X):
        return True
    shape, kind = getattr(X, "shape", None), getattr(getattr(X, "dtype", None), "kind", "O")
    if not isinstance(shape, tuple) or len(shape) != 2 or kind not in "biuf":
        return False
    if in_file(X):
        return True
    if np.ma.isMaskedArray(X) or not hasattr(X, "__getitem__"):
        return False
    in_memory = isinstance(X, np.ndarray) and not _in_a_map(X)
    return 8 * shape[0] * shape[1] > LARGE and not (in_memory and X.dtype == np.float64)


def _in_a_map(X) -> bool:
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap):
            return True
        X = X.base
    return False


def large_table(X: Any, name: str) -> FileTable:
    """Such a table in a file, `MISSING` for NaN, or an error that names it."""
    if in_file(X):
        return X
    names = tuple(X.collect_schema().names()) if is_lazy(X) else None
    p = X.shape[1] if names is None else len(names)
    if p == 0:
        raise ValueError(f"{name} has no columns: give at least one.")

    def encoded():
        for part in _parts(X, max(1, BLOCK // (8 * p))):
            block = matrix_of_reals(part, name)
            check_finite(block, name, names)
            block[np.isnan(block)] = MISSING
            yield block

    try:
        return write_table(p, encoded())
    except OSError as error:
        raise OSError(
            f"{name} could not be kept as float64 in a file in {tempfile.gettempdir()} ({error}). "
            "Free disk space, set the environment variable TMPDIR to another folder, or give "
            f"{name} as a float64 array in memory."
        ) from error


def _parts(X, step: int):
    """Blocks of so many rows."""
    if is_lazy(X):
        yield from X.collect_batches(chunk_size=step)
    else:
        for start in range(0, X.shape[0], step):
            yield X[start : min(start + step, X.shape[0])]
