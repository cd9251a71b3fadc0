"""What the columns of a frame hold: numbers, or levels such as text and categories."""

import re
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pymc_trees.distributions.data.numbers import is_lazy, is_real, real_array

_NUMBERS = re.compile(r"(sparse\[)?(u?int\d|float|halffloat|double|decimal|bool)")
_LEVELS = re.compile(r"category|categorical|enum|dictionary<|str|string|large_string|utf8|object")


class Column(NamedTuple):
    """Cells of one column."""

    cells: np.ndarray
    """Float64 with NaN for missing ones, or objects with None for missing ones."""
    are_levels: bool
    """Whether they are objects."""
    order: tuple | None = None
    """The levels of an ordered category."""
    dtype: str = "float64"
    """Name of the type they came in, for messages."""

    def present(self) -> list:
        """Cells that are not missing."""
        return [c for c in self.cells.tolist() if c is not None and c == c]

    def numbers(self) -> np.ndarray | None:
        """The cells as float64 with NaN, or None when one of them is no number."""
        if not self.are_levels:
            return self.cells
        if not all(is_real(c) for c in self.present()):
            return None
        return np.array([np.nan if c is None else float(c) for c in self.cells])


def column_names(X: Any) -> tuple[str, ...] | None:
    """Names of the columns of a frame; None for an array."""
    if is_lazy(X):
        return tuple(X.collect_schema().names())
    columns = getattr(X, "columns", None)
    return None if columns is None else tuple(str(c) for c in columns)


def columns_of(X: Any, name: str) -> list[Column]:
    """Columns of a pandas or polars frame."""
    found: list[Column] = []
    wrong: list[str] = []
    for j, label in enumerate(column_names(X) or ()):
        column = X.iloc[:, j] if hasattr(X, "iloc") else X[:, j]
        read = _read(column)
        if read is None:
            held = sorted({type(v).__name__ for v in column.to_list()})
            wrong.append(f"{label!r} ({column.dtype} of {', '.join(held)})")
        else:
            found.append(read)
    if wrong:
        raise ValueError(
            f"{name} has columns that are not numeric, text or categories: {', '.join(wrong)}. "
            "Encode dates, intervals and other objects as numbers first, or convert them to "
            "categories."
        )
    return found


def columns_of_objects(X: np.ndarray, name: str) -> list[Column]:
    """Columns of an array of text or objects, read as those of a frame are."""
    values = np.ma.getdata(X).astype(object)
    values[np.ma.getmaskarray(X)] = None
    return columns_of(pd.DataFrame(values, dtype=object), name)


def _read(column) -> Column | None:
    """One column; None when it holds neither numbers nor levels."""
    dtype = str(column.dtype)
    missing = np.asarray(column.isna() if hasattr(column, "isna") else column.is_null())
    if _NUMBERS.match(dtype.lower()):
        return Column(_floats(column, missing), False, dtype=dtype)
    if not _LEVELS.match(dtype.lower()):
        return None
    values = column.to_list()
    cells = np.empty(len(values), dtype=object)
    cells[:] = [None if gone else v for v, gone in zip(values, missing, strict=True)]
    if dtype.lower() == "object" and not all(isinstance(v, str | bool) for v in cells[~missing]):
        if not all(is_real(v) for v in cells[~missing]):
            return None
        return Column(real_array(cells), False, dtype=dtype)
    order = getattr(column.dtype, "categories", None)
    if order is None or not getattr(column.dtype, "ordered", False):
        return Column(cells, True, None, dtype)
    return Column(cells, True, tuple(order), dtype)


def _floats(column, missing) -> np.ndarray:
    """Floats of a column of numbers, NaN where it is missing."""
    kept = column[~missing] if hasattr(column, "iloc") else column.filter(~missing)
    cells = np.full(len(missing), np.nan)
    cells[~missing] = np.asarray(kept.to_numpy(), dtype=float)
    return cells
