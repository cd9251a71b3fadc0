"""What a likelihood's parameter is to the outputs of a forest: a link, a column, a combination.

An expression is recognised by its graph, which equals that of a template.
"""

from collections.abc import Callable, Iterator
from enum import Enum

import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable, equal_computations
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.scalar import Sigmoid
from pytensor.scalar import basic as scalars
from pytensor.tensor.basic import Alloc, Join
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor

from pymc_trees.targets.graph import (
    NotRecognisedError,
    constant,
    dependent_on,
    passes_through,
    stripped,
)


class Slope(Enum):
    """Dependence of row i of an expression on row i of the output."""

    FREE = "does not depend on it"
    ONE = "the output plus something else"
    ANY = "a multiple of the output plus something else"


def output_column(var: Variable, outputs: Variable) -> int | None:
    """Column k when ``var`` is ``outputs[:, k]``, else None."""
    owner = var.owner
    if owner is None or not isinstance(owner.op, Subtensor | DimShuffle):
        return None
    if not is_unchanged(owner.inputs[0], outputs):
        return None
    if isinstance(owner.op, DimShuffle):  # PyMC squeezes what it takes apart in a CustomDist
        return 0 if owner.op.new_order == (0,) else None
    indices = indices_from_subtensor(owner.inputs[1:], owner.op.idx_list)
    if len(indices) != 2 or indices[0] != slice(None):
        return None
    column = indices[1]
    if isinstance(column, Constant):
        column = int(column.data)
    if not isinstance(column, int):
        return None
    return column % outputs.type.shape[1]


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


# ------------------------------- Recognition of an expression: its graph equals that of a template


Template = Callable[[Variable], Variable]


def argument_of(var: Variable, outputs: Variable, templates: list[Template]) -> Variable:
    """The vector x when ``var`` is a template of x.

    Raises
    ------
    NotRecognisedError
        If it matches none for any vector that depends on ``outputs``.
    """
    var = stripped(var)
    for x in vectors_below(var, outputs):
        if any(equal_computations([var], [template(x)]) for template in templates):
            return x
    raise NotRecognisedError(str(var.owner.op) if var.owner else str(var))


LOGISTIC = [lambda x: 1.0 / (1.0 + pt.exp(-x)), lambda x: 1 / (1 + pt.exp(-x))]
"""Common ways to write the logistic function, other than ``pm.math.invlogit``."""


def argument_of_link(p, outputs):
    """The vector of which p is the logistic function, or `NotRecognisedError`."""
    inner = stripped(p)
    op = inner.owner.op if inner.owner else None
    if isinstance(op, Elemwise) and isinstance(op.scalar_op, Sigmoid):
        return inner.owner.inputs[0]
    return argument_of(inner, outputs, LOGISTIC)


def vectors_below(var: Variable, outputs: Variable) -> Iterator[Variable]:
    """Ancestors of ``var`` that are vectors and depend on ``outputs``, nearest first."""
    dependent = dependent_on([var], outputs)
    for x in ancestors([var]):
        if x is not var and x.ndim == 1 and x.dtype == "float64" and x in dependent:
            yield x


def require_fixed(variables: list[Variable], outputs: Variable) -> None:
    """`NotRecognisedError` if a parameter that must be fixed depends on the forest."""
    dependent = dependent_on(variables, outputs)
    if any(v in dependent for v in variables):
        raise NotRecognisedError(
            "a parameter other than the linear predictor depends on the forest"
        )


# --------------------------------------------------------------- One output of a forest in a graph


def unwrapped_column(var: Variable, outputs: Variable) -> int | None:
    """Column k if ``var`` is ``outputs[:, k]``, up to Ops that return their input, else None."""
    while output_column(var, outputs) is None:
        inner = passes_through(var)
        if inner is None:
            return None
        var = inner
    return output_column(var, outputs)


# --------------------------- Is a vector an affine combination of all outputs of a row, row by row?
#
# Decided from the Ops between the two, each of which must keep the rows apart and be linear in
# the outputs; anything else is `NotRecognisedError`, never a guess.


def rows_axis(var: Variable, outputs: Variable, dependent: set[Variable]) -> int:
    """Axis of the rows of an expression whose row i is affine in row i of the outputs.

    Parameters
    ----------
    var : Variable
        The expression, one of ``dependent``.
    outputs : (n, K) variable
        The forest's outputs, n being at least 2: a single row could be broadcast to several.
    dependent : set of variables
        Variables that depend on the outputs.

    Raises
    ------
    NotRecognisedError
        Names the Op.
    """
    if var is outputs:
        return 0
    inner = passes_through(var)
    if inner is not None:
        return rows_axis(inner, outputs, dependent)
    op, inputs = var.owner.op, var.owner.inputs
    if isinstance(op, DimShuffle):
        axis = rows_axis(inputs[0], outputs, dependent)
        if axis in op.new_order:
            return op.new_order.index(axis)
    elif isinstance(op, Subtensor):
        return _axis_of_slice(op, inputs, outputs, dependent)
    elif isinstance(op, CAReduce) and isinstance(op.scalar_op, scalars.Add):
        axis = rows_axis(inputs[0], outputs, dependent)
        if op.axis is not None and axis not in op.axis:
            return axis - sum(k < axis for k in op.axis)
    elif is_product(op, inputs):
        return _axis_of_product(op, inputs, outputs, dependent)
    elif isinstance(op, Join):
        axes = {rows_axis(v, outputs, dependent) for v in inputs if v in dependent}
        if len(axes) == 1 and op.axis % var.ndim not in axes:
            return axes.pop()
    elif isinstance(op, Alloc):
        return rows_axis(inputs[0], outputs, dependent) + var.ndim - inputs[0].ndim
    elif isinstance(op, Elemwise):
        bound = [v for v in inputs if v in dependent]
        axes = {rows_axis(v, outputs, dependent) for v in bound}
        if len(axes) == 1 and _is_affine(op.scalar_op, inputs, bound):
            return axes.pop()
    raise NotRecognisedError(str(op))


def is_product(op, inputs: list[Variable]) -> bool:
    """Whether an Op is the product of two matrices, or of a matrix and a vector."""
    core = op.core_op if isinstance(op, Blockwise) else op
    return isinstance(core, Dot) and all(v.ndim <= 2 for v in inputs)


def _is_affine(kind, inputs: list[Variable], bound: list[Variable]) -> bool:
    """Whether an elementwise function is affine in its inputs that depend on the outputs."""
    if isinstance(kind, scalars.Add | scalars.Sub | scalars.Neg):
        return True
    if isinstance(kind, scalars.Mul):
        return len(bound) == 1
    if isinstance(kind, scalars.Second):  # the second of two, in the shape of the first
        return inputs[0] not in bound
    return isinstance(kind, scalars.TrueDiv) and inputs[1] not in bound


def _axis_of_slice(op, inputs, outputs, dependent) -> int:
    """All rows, of some of the other entries."""
    array, *numbers = inputs
    indices = indices_from_subtensor(numbers, op.idx_list)
    axis = rows_axis(array, outputs, dependent)
    if any(v in dependent for v in numbers):
        raise NotRecognisedError(f"{op}, an index that depends on it")
    if axis < len(indices) and indices[axis] != slice(None):
        raise NotRecognisedError(f"{op} of the rows")
    return axis - sum(not isinstance(i, slice) for i in indices[:axis])


def _axis_of_product(op, inputs, outputs, dependent) -> int:
    """A matrix or vector product over an axis that is not that of the rows."""
    left, right = inputs
    if not (left in dependent and right in dependent):
        if left in dependent and rows_axis(left, outputs, dependent) < left.ndim - 1:
            return 0
        if right in dependent and rows_axis(right, outputs, dependent) == 1:
            return left.ndim - 1
    raise NotRecognisedError(str(op))


# ---------------------------------------------------------- Slope and offset of affine expressions


def affine_pair(e: Variable, outputs: Variable) -> list[Variable]:
    """Slope and offset of an expression of f, the latter where the outputs are 0.

    Raises
    ------
    NotRecognisedError
        When it is not known to be affine, row by row.
    """
    kind = slope_of(e, outputs)
    if kind is Slope.ONE or kind is Slope.FREE:
        return [pt.constant(float(kind is Slope.ONE)), e]
    slope = pt.grad(e.sum(), outputs, disconnected_inputs="ignore")[:, 0]
    # without the fills of a raw gradient, which run row by row in Python
    return [rewrite_graph(slope, include=("canonicalize",), clone=True), e]


def log_affine_pair(var: Variable, outputs: Variable) -> list[Variable]:
    """The same of the logarithm of a positive expression."""
    var = stripped(var)
    if not is_log_affine(var, outputs):
        raise NotRecognisedError(str(var.owner.op) if var.owner else str(var))
    op = var.owner.op if var.owner else None
    if isinstance(op, Elemwise) and isinstance(op.scalar_op, scalars.Exp):
        return affine_pair(var.owner.inputs[0], outputs)
    return affine_pair(pt.log(var), outputs)


def read_affine(mean: Variable, outputs: Variable) -> list[Variable]:
    """Expressions of b, where the outputs are 0, and of a unless it is 1, of a mean a f + b.

    Raises
    ------
    NotRecognisedError
        When the mean is not known to be affine in f, row by row.
    """
    if slope_of(mean, outputs) is Slope.ONE:
        return [mean]
    factor = pt.grad(mean.sum(), outputs, disconnected_inputs="ignore")[:, 0]
    # without the fills of a raw gradient, which run row by row in Python
    return [mean, rewrite_graph(factor, include=("canonicalize",), clone=True)]
