"""What a likelihood's parameter is to the outputs of a forest: a link, a column, a combination.

An expression is recognised by its graph, which equals that of a template.
"""

from collections.abc import Callable, Iterator

import pytensor.tensor as pt
from pytensor.graph.basic import Variable, equal_computations
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.scalar import basic as scalars
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor

from pymc_trees.targets.affine import Slope, is_log_affine, output_column, passes_through, slope_of
from pymc_trees.targets.errors import NotRecognisedError
from pymc_trees.targets.graph import dependent_on
from pymc_trees.targets.stacks import stripped

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


def vectors_below(var: Variable, outputs: Variable) -> Iterator[Variable]:
    """Ancestors of ``var`` that are vectors and depend on ``outputs``, nearest first."""
    seeing = dependent_on([var], outputs)
    for x in ancestors([var]):
        if x is not var and x.ndim == 1 and x.dtype == "float64" and x in seeing:
            yield x


def refuse_if_seen(variables: list[Variable], outputs: Variable) -> None:
    """`NotRecognisedError` if a parameter that must be fixed depends on the forest."""
    seeing = dependent_on(variables, outputs)
    if any(v in seeing for v in variables):
        raise NotRecognisedError("a parameter beside the linear predictor sees the forest")


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


def rows_axis(var: Variable, outputs: Variable, seeing: set[Variable]) -> int:
    """Axis of the rows of an expression whose row i is affine in row i of the outputs.

    Parameters
    ----------
    var : Variable
        The expression, one of ``seeing``.
    outputs : (n, K) variable
        The forest's outputs, n being at least 2: a single row could be broadcast to several.
    seeing : set of variables
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
        return rows_axis(inner, outputs, seeing)
    op, inputs = var.owner.op, var.owner.inputs
    if isinstance(op, DimShuffle):
        axis = rows_axis(inputs[0], outputs, seeing)
        if axis in op.new_order:
            return op.new_order.index(axis)
    elif isinstance(op, Subtensor):
        return _axis_of_slice(op, inputs, outputs, seeing)
    elif isinstance(op, CAReduce) and isinstance(op.scalar_op, scalars.Add):
        axis = rows_axis(inputs[0], outputs, seeing)
        if op.axis is not None and axis not in op.axis:
            return axis - sum(k < axis for k in op.axis)
    elif is_product(op, inputs):
        return _axis_of_product(op, inputs, outputs, seeing)
    elif isinstance(op, Elemwise):
        bound = [v for v in inputs if v in seeing]
        axes = {rows_axis(v, outputs, seeing) for v in bound}
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
    return isinstance(kind, scalars.TrueDiv) and inputs[1] not in bound


def _axis_of_slice(op, inputs, outputs, seeing) -> int:
    """All rows, of some of the other entries."""
    array, *numbers = inputs
    indices = indices_from_subtensor(numbers, op.idx_list)
    axis = rows_axis(array, outputs, seeing)
    if any(v in seeing for v in numbers):
        raise NotRecognisedError(f"{op}, an index that depends on it")
    if axis < len(indices) and indices[axis] != slice(None):
        raise NotRecognisedError(f"{op} of the rows")
    return axis - sum(not isinstance(i, slice) for i in indices[:axis])


def _axis_of_product(op, inputs, outputs, seeing) -> int:
    """A matrix or vector product over an axis that is not that of the rows."""
    left, right = inputs
    if not (left in seeing and right in seeing):
        if left in seeing and rows_axis(left, outputs, seeing) < left.ndim - 1:
            return 0
        if right in seeing and rows_axis(right, outputs, seeing) == 1:
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
