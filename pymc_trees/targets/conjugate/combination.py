"""Is a vector an affine combination of all outputs of a row, row by row?

Decided from the Ops between the two, each of which must keep the rows apart and be linear in the
outputs; anything else is `NotAffineError`, never a guess.
"""

from pytensor.graph.basic import Variable
from pytensor.scalar import basic as scalars
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor

from pymc_trees.targets.affine import NotAffineError, passes_through


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
    NotAffineError
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
    raise NotAffineError(str(op))


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
        raise NotAffineError(f"{op}, an index that depends on it")
    if axis < len(indices) and indices[axis] != slice(None):
        raise NotAffineError(f"{op} of the rows")
    return axis - sum(not isinstance(i, slice) for i in indices[:axis])


def _axis_of_product(op, inputs, outputs, seeing) -> int:
    """A matrix or vector product over an axis that is not that of the rows."""
    left, right = inputs
    if not (left in seeing and right in seeing):
        if left in seeing and rows_axis(left, outputs, seeing) < left.ndim - 1:
            return 0
        if right in seeing and rows_axis(right, outputs, seeing) == 1:
            return left.ndim - 1
    raise NotAffineError(str(op))
