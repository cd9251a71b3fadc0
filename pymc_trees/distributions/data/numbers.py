"""Real numbers from arrays and frames, settings and expressions; all else is an error."""

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
import pytensor.tensor as pt
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
    masked = np.ma.getmaskarray(value) if np.ma.isMaskedArray(value) else None
    values = np.asarray(value.to_numpy() if hasattr(value, "to_numpy") else np.ma.getdata(value))
    kind = values.dtype.kind
    if kind == "O":
        missing = pd.isna(values)
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


def row_numbers(name: str, values: Any, n: int | None = None) -> np.ndarray:
    """(n,) finite numbers, or an error that names them."""
    try:
        numbers = real_array(values)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold numbers only: {error}.") from error
    if numbers.ndim != 1 or (n is not None and numbers.size != n):
        wanted = "one number a row" if n is None else f"{n} numbers, one a row of X"
        raise ValueError(f"{name} has shape {numbers.shape}: give {wanted}.")
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} holds missing or infinite values: leave those rows out.")
    return numbers.astype(np.float64)


def is_random(variable: Variable) -> bool:
    """Whether an expression depends on more than constants and model data."""
    return any(
        not isinstance(root, Constant | SharedVariable) or isinstance(root.type, RandomType)
        for root in graph_inputs([variable])
    )


def present_numbers(variable: Variable) -> np.ndarray | None:
    """Present value of an expression of constants and model data; None if it is random."""
    if isinstance(variable, Constant):
        return np.asarray(variable.data)
    return None if is_random(variable) else np.asarray(variable.eval(mode="FAST_COMPILE"))


def as_tensor(value: Any) -> Variable:
    """Setting as a float64 tensor."""
    return pt.as_tensor(value, dtype=None if isinstance(value, Variable) else "float64")
