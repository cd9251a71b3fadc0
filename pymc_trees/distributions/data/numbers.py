"""Real numbers from arrays and frames, settings and expressions; all else is an error."""

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import graph_inputs
from pytensor.tensor.random.type import RandomType

from pymc_trees.predictors.columns import real_array


def is_number(value: Any) -> bool:
    """Whether a setting is one finite number; True and False are none."""
    return (
        isinstance(value, int | float | np.integer | np.floating)
        and not isinstance(value, bool)
        and bool(np.isfinite(value))
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
