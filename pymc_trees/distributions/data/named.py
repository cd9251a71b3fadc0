"""Inputs and settings whose dimensions have names (`pymc.dims`): names in, names out.

Forests are made of tensors. Names are removed from inputs and settings, and a function of inputs
with named dimensions gets the name of their rows.
"""

from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pymc as pm
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.xtensor.basic import TensorFromXTensor, XTensorFromTensor, tensor_from_xtensor
from pytensor.xtensor.type import XTensorType


def is_named(variable: Any) -> bool:
    """Whether the dimensions of a variable have names."""
    return isinstance(variable, Variable) and isinstance(variable.type, XTensorType)


def unnamed(value: Any) -> Any:
    """A variable as a tensor, and settings with such variables; anything else as it is."""
    if is_dataclass(value) and not isinstance(value, type):
        named = {
            f.name: unnamed(getattr(value, f.name))
            for f in fields(value)
            if is_named(getattr(value, f.name))
        }
        return replace(value, **named) if named else value
    if not is_named(value):
        return value
    if value.owner is not None and isinstance(value.owner.op, XTensorFromTensor):
        [inner] = value.owner.inputs
        return inner
    return tensor_from_xtensor(value)


def bare(X: Variable) -> Variable:
    """The variable that inputs are, where another one only names its dimensions."""
    while X.owner is not None and isinstance(X.owner.op, XTensorFromTensor | TensorFromXTensor):
        [X] = X.owner.inputs
    return X


def present(X: Variable) -> np.ndarray:
    """Current numbers of inputs that are data, without a copy."""
    X = bare(X)
    if isinstance(X, Constant):
        return X.data
    return X.get_value(borrow=True) if isinstance(X, SharedVariable) else X.eval()


def dims_of(X: Variable) -> tuple[str, ...] | None:
    """Names of the dimensions of a variable, if these have any."""
    return X.type.dims if isinstance(X.type, XTensorType) else None


def rows_dim(names: tuple[str, ...] | None, dims=None) -> str | None:
    """Name of the rows of inputs, given the names of their dimensions, or None without names.

    ``dims`` are those that a function of the rows is to have.
    """
    if names is None:
        return None
    if len(names) != 2:
        raise ValueError(f"X has the dimensions {names}: give two, the rows and the columns.")
    rows, columns = names
    wanted = () if dims is None else (dims,) if isinstance(dims, str) else tuple(dims)
    if wanted and rows not in wanted:
        if columns in wanted:
            raise ValueError(
                f"X has the dimensions {names}, of which the first is that of the rows, and "
                f"dims={dims!r}: give X.transpose({columns!r}, {rows!r})."
            )
        raise ValueError(
            f"X has the rows {rows!r}, but dims={dims!r}: use the same name, with {rows!r} "
            "among dims."
        )
    return rows


def register(name: str, function: Variable, dims, rows: str | None, model: pm.Model) -> Variable:
    """Deterministic of a function: with named dimensions, if those of X are."""
    if rows is None:
        return pm.Deterministic(name, function, dims=dims, model=model)
    if dims is None and function.ndim == 1:
        dims = rows
    if dims is None:
        raise ValueError(
            f"X has named dimensions, and {name} has {function.ndim}: name them with dims=, using "
            f"{rows!r} for the rows."
        )
    # by now a user has imported it, which makes PyMC lower every logp: not for other models
    from pymc.dims import Deterministic

    return Deterministic(name, function, dims=dims, model=model)
