"""Stacked outputs: the slice of an expression that depends on one of them.

`BART(shape=(K, n))` returns a stack of K forests' functions. An entry of the stack depends on one
of them, and so does one slice of any expression that acts on slices separately, for example the
mean of a Normal. Such slices are followed through the Ops in between, never guessed.
"""

from collections.abc import Iterable, Iterator

from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import toposort
from pytensor.tensor.basic import Join
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor

from pymc_trees.targets.affine import constant, passes_through


class NotASliceError(Exception):
    """No single slice of an expression depends on the forest; the message names the Op."""


def picked(var: Variable) -> Variable | None:
    """The part if ``var`` is an entry of a stack, ``pt.stack([a, b, ...])[k]``, else None."""
    owner = var.owner
    if owner is None or not isinstance(owner.op, Subtensor):
        return None
    stack = stripped(owner.inputs[0])
    if stack.owner is None or not isinstance(stack.owner.op, Join):
        return None
    indices = indices_from_subtensor(owner.inputs[1:], owner.op.idx_list)
    axis = stack.owner.op.axis
    if len(indices) <= axis or any(i != slice(None) for i in indices[:axis] + indices[axis + 1 :]):
        return None
    k, parts = _known(indices[axis]), stack.owner.inputs
    if k is None or any(part.type.shape[axis] != 1 for part in parts):
        return None
    part = parts[k].owner
    if part is None or not isinstance(part.op, DimShuffle) or part.op.new_order[axis] != "x":
        return None
    order = part.op.new_order[:axis] + part.op.new_order[axis + 1 :]
    return part.inputs[0] if order == tuple(range(part.inputs[0].ndim)) else None


def _known(index):
    if isinstance(index, Variable):
        number = constant(index)
        return None if number is None else int(number)
    return index if isinstance(index, int) else None


def stripped(var: Variable) -> Variable:
    """An expression without the Ops around it that return it unchanged."""
    while (inner := passes_through(var)) is not None:
        var = inner
    return var


def depends_on(variables: Iterable[Variable], wanted: Variable, blockers: set[Variable]) -> bool:
    """Whether numbers of expressions depend on a variable; a shape does not.

    Entries of stacks only depend on their part.
    """
    todo, known = list(variables), set()
    while todo:
        var = todo.pop()
        if var in known:
            continue
        known.add(var)
        if var is wanted:
            return True
        if var.owner is not None and var not in blockers and not _is_shape(var.owner.op):
            part = picked(var)
            todo += var.owner.inputs if part is None else [part]
    return False


def _is_shape(op) -> bool:
    return isinstance(op, Shape | Shape_i)


def without_picks(expressions: list[Variable]) -> list[Variable]:
    """Expressions with entries of stacks replaced by the parts that they are."""
    found = {}
    for node in toposort(expressions):
        for var in node.outputs:
            part = picked(var)
            if part is not None:
                found[var] = part
    return clone_replace(expressions, found, rebuild_strict=False) if found else expressions


def place_of(var: Variable, seeing: set[Variable]) -> tuple[int, int]:
    """Axis and index of the only slice of a matrix that depends on the forest.

    Raises
    ------
    NotASliceError
        When it is not known to be one.
    """
    var = stripped(var)
    op = var.owner.op if var.owner else None
    inputs = [v for v in var.owner.inputs if v in seeing] if var.owner else []
    if isinstance(op, Join) and len(inputs) == 1:
        [part] = inputs
        before = [v.type.shape[op.axis] for v in var.owner.inputs[: var.owner.inputs.index(part)]]
        axis, k = (op.axis, 0) if part.type.shape[op.axis] == 1 else place_of(part, seeing)
        if axis == op.axis and None not in before:
            return axis, sum(before) + k
    if isinstance(op, Elemwise):
        found = {place_of(v, seeing) for v in inputs}
        if len(found) == 1:
            return found.pop()
    if isinstance(op, DimShuffle) and op.new_order == (1, 0):
        axis, k = place_of(inputs[0], seeing)
        return 1 - axis, k
    raise NotASliceError(str(op))


def slice_of(var: Variable, axis: int, k: int, seeing: set[Variable]) -> Variable:
    """A matrix at one place of one axis, as a vector.

    Raises
    ------
    NotASliceError
        When an Op between it and the forest is not known.
    """
    if var not in seeing:
        at = 0 if var.type.broadcastable[axis] else k
        return var[at] if axis == 0 else var[:, at]
    var = stripped(var)
    node, op = var.owner, var.owner.op if var.owner else None
    if isinstance(op, Elemwise):
        inputs = [slice_of(v, axis, k, seeing) for v in node.inputs]
        return op.make_node(*inputs).outputs[node.outputs.index(var)]
    if isinstance(op, Join) and op.axis == axis:
        for part in node.inputs:
            if k < part.type.shape[axis]:
                return slice_of(part, axis, k, seeing)
            k -= part.type.shape[axis]
    if isinstance(op, DimShuffle) and op.new_order == (1, 0):
        return slice_of(node.inputs[0], 1 - axis, k, seeing)
    if isinstance(op, DimShuffle) and op.new_order[axis] == "x":
        order = op.new_order[:axis] + op.new_order[axis + 1 :]
        return node.inputs[0].dimshuffle(order)
    raise NotASliceError(str(op))


def slices(variables: list[Variable], axis: int, k: int, seeing: set[Variable]) -> Iterator:
    """`slice_of` of numbers, vectors and matrices that are broadcast with each other."""
    for var in variables:
        if var.ndim == 2:
            yield slice_of(var, axis, k, seeing)
        elif var in seeing:
            raise NotASliceError("a vector among matrices")
        elif var.ndim == 1 and axis == 1:
            yield var[0 if var.type.broadcastable[0] else k]
        else:
            yield var
