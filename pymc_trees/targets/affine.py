"""Dependence of an expression on one output of a forest, decided from the Ops between them."""

from enum import Enum

from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors
from pytensor.scalar import basic as scalars
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.shape import SpecifyShape
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor

from pymc_trees.targets.errors import NotRecognisedError


class Slope(Enum):
    """Dependence of row i of an expression on row i of the output."""

    FREE = "does not depend on it"
    ONE = "the output plus something else"
    ANY = "a multiple of the output plus something else"


def output_column(var: Variable, outputs: Variable) -> int | None:
    """Column k when ``var`` is ``outputs[:, k]``, else None."""
    owner = var.owner
    if owner is None or not isinstance(owner.op, Subtensor):
        return None
    if not is_unchanged(owner.inputs[0], outputs):
        return None
    indices = indices_from_subtensor(owner.inputs[1:], owner.op.idx_list)
    if len(indices) != 2 or indices[0] != slice(None):
        return None
    column = indices[1]
    if isinstance(column, Constant):
        column = int(column.data)
    if not isinstance(column, int):
        return None
    return column % outputs.type.shape[1]


def passes_through(var: Variable) -> Variable | None:
    """The input of an Op that returns it unchanged, else None.

    A check of parameters is not such an Op: it determines where the likelihood is 0.
    """
    if var.owner is None:
        return None
    op = var.owner.op
    if isinstance(op, DimShuffle):
        unchanged = op.new_order == tuple(range(var.owner.inputs[0].ndim))
    elif isinstance(op, Elemwise) and isinstance(op.scalar_op, scalars.Cast):
        unchanged = var.dtype == "float64"
    elif isinstance(op, Elemwise):
        unchanged = isinstance(op.scalar_op, scalars.Identity)
    else:
        unchanged = isinstance(op, SpecifyShape) or type(op).__name__ in ("ViewOp", "DeepCopyOp")
    return var.owner.inputs[0] if unchanged else None


def is_unchanged(var: Variable | None, outputs: Variable) -> bool:
    """Whether ``var`` is ``outputs``, up to Ops that return their input."""
    while var is not None and var is not outputs:
        var = passes_through(var)
    return var is outputs


def slope_of(var: Variable, outputs: Variable) -> Slope:
    """Dependence of a vector on ``outputs[:, 0]``, row by row."""
    if not any(v is outputs for v in ancestors([var])):
        return Slope.FREE
    if output_column(var, outputs) == 0:
        return Slope.ONE
    inner = passes_through(var)
    if inner is not None:
        return slope_of(inner, outputs)
    op = var.owner.op
    if not isinstance(op, Elemwise) or var.ndim != 1:
        raise NotRecognisedError(str(op))
    if isinstance(op.scalar_op, scalars.Log) and is_log_affine(var.owner.inputs[0], outputs):
        return Slope.ANY
    slopes = [slope_of(v, outputs) for v in var.owner.inputs]
    bound = [s for s in slopes if s is not Slope.FREE]
    kind = op.scalar_op
    if isinstance(kind, scalars.Add):
        return bound[0] if len(bound) == 1 else Slope.ANY
    if isinstance(kind, scalars.Sub):
        return bound[0] if slopes[1] is Slope.FREE else Slope.ANY
    by_division = isinstance(kind, scalars.TrueDiv) and slopes[1] is Slope.FREE
    if by_division or (isinstance(kind, scalars.Neg | scalars.Mul) and len(bound) == 1):
        return Slope.ANY
    raise NotRecognisedError(str(op))


def is_log_affine(var: Variable, outputs: Variable) -> bool:
    """Whether the logarithm of a vector is certainly affine in ``outputs[:, 0]``, row by row."""
    if not any(v is outputs for v in ancestors([var])):
        return True
    inner = passes_through(var)
    if inner is not None:
        return is_log_affine(inner, outputs)
    op, inputs = var.owner.op, var.owner.inputs
    if not isinstance(op, Elemwise) or var.ndim != 1:
        return False
    kind = op.scalar_op
    if isinstance(kind, scalars.Exp):
        try:
            slope_of(inputs[0], outputs)
        except NotRecognisedError:
            return False
        return True
    if isinstance(kind, scalars.Pow):
        return constant(inputs[1]) is not None and is_log_affine(inputs[0], outputs)
    if isinstance(kind, scalars.Mul | scalars.TrueDiv) or type(kind) in POWERS:
        return all(is_log_affine(v, outputs) for v in inputs)
    return False


POWERS = {
    scalars.Sqrt: 0.5,
    scalars.Reciprocal: -1.0,
    scalars.Sqr: 2.0,
    scalars.Abs: 1.0,
    scalars.Sign: 0.0,  # 1 for a positive number: pm.Normal(tau=) has it
}
"""Exponents of functions of one positive number."""


def power_of(var: Variable, outputs: Variable, column: int) -> float:
    """Exponent e when ``var`` is ``outputs[:, column] ** e``, given that the column is positive."""
    if output_column(var, outputs) == column:
        return 1.0
    inner = passes_through(var)
    if inner is not None:
        return power_of(inner, outputs, column)
    if var.owner is None or not isinstance(var.owner.op, Elemwise):
        raise NotRecognisedError(str(var.owner.op) if var.owner else str(var))
    kind, inputs = var.owner.op.scalar_op, var.owner.inputs
    if type(kind) in POWERS:
        return POWERS[type(kind)] * power_of(inputs[0], outputs, column)
    if isinstance(kind, scalars.Mul):
        return sum(power_of(v, outputs, column) for v in inputs)
    if isinstance(kind, scalars.TrueDiv) and constant(inputs[0]) == 1.0:
        return -power_of(inputs[1], outputs, column)
    if isinstance(kind, scalars.Pow):
        exponent = constant(inputs[1])
        if exponent is not None:
            return exponent * power_of(inputs[0], outputs, column)
    raise NotRecognisedError(str(var.owner.op))


def constant(var: Variable) -> float | None:
    """Value of a constant with one entry, through broadcasting, else None."""
    while var.owner and isinstance(var.owner.op, DimShuffle):
        var = var.owner.inputs[0]
    if isinstance(var, Constant) and var.data.size == 1:
        return float(var.data.item())
    return None
