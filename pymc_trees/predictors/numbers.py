"""Real numbers from arrays and frames; all else is an error. Needs numpy alone."""

import sys
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

EXACT = 2.0**53
"""Whole numbers below this are all floats."""


def is_real(value: Any) -> bool:
    """Whether one entry is a real number; a bool is 0 or 1, a date or text is none."""
    return isinstance(value, Real | Decimal | np.bool_) and not isinstance(value, np.timedelta64)


def is_masked(value: Any) -> bool:
    """Whether it is a masked array; where there are none, their module is not loaded."""
    return "numpy.ma" in sys.modules and np.ma.isMaskedArray(value)


def is_missing(cell: Any) -> bool:
    """Whether an entry of an array of objects is None, NaN, NaT or NA."""
    if cell is None:
        return True
    try:
        return bool(cell != cell)
    except (TypeError, ValueError):  # pandas' NA, an array
        return type(cell).__name__ == "NAType"


def is_lazy(X: Any) -> bool:
    """Whether X is a lazy frame that gives its rows in batches."""
    return hasattr(X, "collect_batches") and hasattr(X, "collect_schema")


def check_held(X: Any, name: str) -> None:
    """Raise an error for what holds no table of cells in memory."""
    if hasattr(X, "collect") and not hasattr(X, "to_numpy"):
        raise TypeError(f"{name} is a {type(X).__name__}, which holds no rows: give .collect().")
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise TypeError(f"{name} is a sparse {type(X).__name__}: give {name}.toarray().")


def real_array(value: Any) -> np.ndarray:
    """Float64 copy of an array, series or list, NaN where it is masked or missing.

    Raises
    ------
    TypeError
        With what it holds, when that is anything but real numbers.
    """
    masked = np.ma.getmaskarray(value) if is_masked(value) else None
    value = value.data if is_masked(value) else value
    values = np.asarray(value.to_numpy() if hasattr(value, "to_numpy") else value)
    kind = values.dtype.kind
    if kind == "O":
        missing = np.array([is_missing(v) for v in values.flat], dtype=bool)
        missing = missing.reshape(values.shape)
        other = next((v for v in values[~missing].flat if not is_real(v)), None)
        if other is not None:
            raise TypeError(f"it holds {other!r} of type {type(other).__name__}")
        values = np.where(missing, np.nan, values)
    elif kind == "c":
        raise TypeError("complex numbers have no order")
    elif kind not in "biuf":
        raise TypeError(f"its entries are of type {values.dtype}")
    values = np.array(values, dtype=np.float64, order="C")
    if masked is not None:
        values[masked] = np.nan
    return values


def matrix_of_reals(value: Any, name: str) -> np.ndarray:
    """`real_array`, or an error that names it."""
    try:
        return real_array(value)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must hold numbers only, but could not be read as floats ({error}). "
            "Encode text and dates as numbers; text can stay as it is in a pandas or polars frame "
            "for a model that takes levels, such as BART."
        ) from error


def check_finite(values: np.ndarray, name: str, columns=None) -> None:
    """Raise an error for infinite numbers in a matrix, naming the columns."""
    infinite = np.isinf(values)
    if infinite.any():
        indices = np.flatnonzero(infinite.any(axis=0)).tolist()
        named = [columns[j] for j in indices] if columns else indices
        raise ValueError(
            f"{name} holds infinite values in columns {named}: remove or impute those rows, or "
            "use NaN for a missing cell if the model takes these, as BART does."
        )
