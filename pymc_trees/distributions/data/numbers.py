"""Read real numbers from arrays and frames, and refuse everything else."""

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import graph_inputs
from pytensor.tensor.random.type import RandomType

EXACT = 2.0**53
"""Whole numbers below this are all floats."""


def is_real(value: Any) -> bool:
    """Whether one entry is a real number; a bool is 0 or 1, a date or text is none."""
    return isinstance(value, Real | Decimal | np.bool_) and not isinstance(value, np.timedelta64)


def is_number(value: Any) -> bool:
    """Whether a setting is one finite number; True and False are none."""
    return (
        isinstance(value, int | float | np.integer | np.floating)
        and not isinstance(value, bool)
        and bool(np.isfinite(value))
    )


def is_lazy(X: Any) -> bool:
    """Whether X is a lazy frame that gives its rows in batches."""
    return hasattr(X, "collect_batches") and hasattr(X, "collect_schema")


def check_held(X: Any, name: str) -> None:
    """Refuse what holds no table of cells in memory."""
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
    masked = np.ma.getmaskarray(value) if np.ma.isMaskedArray(value) else None
    values = np.asarray(value.to_numpy() if hasattr(value, "to_numpy") else np.ma.getdata(value))
    kind = values.dtype.kind
    if kind == "O":
        gone = pd.isna(values)
        wrong = next((v for v in values[~gone].flat if not is_real(v)), None)
        if wrong is not None:
            raise TypeError(f"it holds {wrong!r} of type {type(wrong).__name__}")
        values = np.where(gone, np.nan, values)
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
    """Refuse a matrix with infinite numbers, naming the columns."""
    infinite = np.isinf(values)
    if infinite.any():
        named = [columns[j] if columns else int(j) for j in np.flatnonzero(infinite.any(axis=0))]
        raise ValueError(
            f"{name} holds infinite values in columns {named}: remove or impute those rows, or "
            "use NaN for a missing cell if the model takes these, as BART does."
        )


def row_numbers(name: str, values: Any, n: int | None = None) -> np.ndarray:
    """(n,) finite numbers, or an error that names them."""
    try:
        found = real_array(values)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold numbers only: {error}.") from error
    if found.ndim != 1 or (n is not None and found.size != n):
        wanted = "one number a row" if n is None else f"{n} numbers, one a row of X"
        raise ValueError(f"{name} has shape {found.shape}: give {wanted}.")
    if not np.isfinite(found).all():
        raise ValueError(f"{name} holds missing or infinite values: leave those rows out.")
    return found.astype(np.float64)


def is_random(variable: Variable) -> bool:
    """Whether an expression sees more than constants and model data."""
    return any(
        not isinstance(root, Constant | SharedVariable) or isinstance(root.type, RandomType)
        for root in graph_inputs([variable])
    )


def present_numbers(variable: Variable) -> np.ndarray | None:
    """What constants and model data make of an expression at present; None if it is random."""
    if isinstance(variable, Constant):
        return np.asarray(variable.data)
    return None if is_random(variable) else np.asarray(variable.eval(mode="FAST_COMPILE"))
