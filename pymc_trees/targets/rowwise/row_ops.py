"""Ops that act on rows separately and alike, with the rule by which `rowwise` reads each.

This is an allow-list. Each rule returns the axis of the rows after the Op, given that before it,
and raises an error if the Op would mix rows.
"""

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Variable
from pytensor.tensor.basic import Alloc, ARange, Join
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import Reshape, Shape
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor, indices_from_subtensor

from pymc_trees.targets.graph import dependent_on
from pymc_trees.targets.rowwise.reading import (
    Aligned,
    MixedRowsError,
    NotRowwiseError,
    Reader,
    read_op,
)


def _common(reader: Reader, variables: list[Variable]) -> tuple[int, Variable | None]:
    """Axis and index shared by all inputs that depend on the forest."""
    read = [reader.read(v) for v in variables if v in reader.seeing]
    first = read[0]
    for other in read[1:]:
        if other.axis != first.axis or other.index is not first.index:
            raise MixedRowsError("rows on different axes, or taken by different indices")
    return first.axis, first.index


def _inputs(reader, variables, axis, index, full=False):
    return [
        reader.read(v).var if v in reader.seeing else reader.take(v, axis, index, full)
        for v in variables
    ]


def _again(op, inputs, node, var):
    """Output of the same Op for other inputs."""
    return op.make_node(*inputs).outputs[node.outputs.index(var)]


@read_op.register
def _one_by_one(op: Elemwise | Blockwise, reader, var):
    node = var.owner
    if isinstance(op, Blockwise) and isinstance(op.core_op, Dot) and var.ndim == 2:
        return _product(op, reader, var)
    axis, index = _common(reader, node.inputs)
    if isinstance(op, Blockwise) and axis >= op.batch_ndim(node):
        raise NotRowwiseError(f"{op} over the rows")
    return Aligned(_again(op, _inputs(reader, node.inputs, axis, index), node, var), axis, index)


@read_op.register
def _product(op: Dot, reader, var):
    """A matrix or vector product over an axis that is not that of the rows."""
    left, right = var.owner.inputs
    seen, other = (left, right) if left in reader.seeing else (right, left)
    if other in reader.seeing:
        raise NotRowwiseError(f"{op} of two that depend on it")
    found = reader.read(seen)
    if found.axis == (left.ndim - 1 if seen is left else max(0, right.ndim - 2)):
        raise MixedRowsError(f"{op} over the rows")
    pair = [found.var, reader.take(other, -1, None, full=True)]
    axis = 0 if seen is left else left.ndim - 1
    return Aligned(op(*(pair if seen is left else pair[::-1])), axis, found.index)


@read_op.register
def _dimshuffle(op: DimShuffle, reader, var):
    found = reader.read(var.owner.inputs[0])
    if found.axis not in op.new_order:
        raise NotRowwiseError(str(op))
    return Aligned(found.var.dimshuffle(op.new_order), op.new_order.index(found.axis), found.index)


@read_op.register
def _reduce(op: CAReduce, reader, var):
    found = reader.read(var.owner.inputs[0])
    if op.axis is None or found.axis in op.axis:
        raise MixedRowsError(f"{op} over the rows")
    axis = found.axis - sum(k < found.axis for k in op.axis)
    return Aligned(op(found.var), axis, found.index)


@read_op.register
def _cumulate(op: CumOp, reader, var):
    found = reader.read(var.owner.inputs[0])
    if op.axis is None or op.axis % found.var.ndim == found.axis:
        raise MixedRowsError(f"{op} over the rows")
    return Aligned(op(found.var), found.axis, found.index)


@read_op.register
def _symbolic(op: OpFromGraph, reader, var):
    """An Op that contains a graph: softmax, logsumexp."""
    node = var.owner
    inside = op.fgraph.bind(node.inputs)[node.outputs.index(var)]
    reader.seeing |= dependent_on([inside], reader.outputs)
    return reader.read(inside)


@read_op.register
def _allocate(op: Alloc, reader, var):
    """Broadcasting without effect: PyMC gives every log-probability its full shape."""
    value = var.owner.inputs[0]
    if value.ndim != var.ndim or value.type.broadcastable != var.type.broadcastable:
        raise NotRowwiseError(str(op))
    return reader.read(value)


@read_op.register
def _join(op: Join, reader, var):
    node = var.owner
    axis, index = _common(reader, node.inputs)
    if op.axis == axis:
        raise MixedRowsError(f"{op} along the rows")
    # a Join does not broadcast: every part needs its entry for each row
    parts = _inputs(reader, node.inputs, axis, index, full=True)
    return Aligned(_again(op, parts, node, var), axis, index)


@read_op.register
def _slices(op: Subtensor, reader, var):
    array, *numbers = var.owner.inputs
    if any(v in reader.seeing for v in numbers):
        raise NotRowwiseError("an index that depends on it")
    found = reader.read(array)
    indices = list(indices_from_subtensor(numbers, op.idx_list))
    indices += [slice(None)] * (found.var.ndim - len(indices))
    if not _is_whole(reader, indices[found.axis]):
        raise MixedRowsError(f"{op} of the rows")
    indices[found.axis] = slice(None)
    before = indices[: found.axis]
    axis = found.axis - sum(not isinstance(i, slice) for i in before)
    return Aligned(found.var[tuple(_plain(reader, i) for i in indices)], axis, found.index)


def _is_whole(reader, index):
    """Whether an index takes all rows in their order."""
    if not isinstance(index, slice) or index.stop is not None:
        return False
    start, step = (None if i is None else _plain(reader, i) for i in (index.start, index.step))
    return start in (None, 0) and step in (None, 1)


def _plain(reader, index):
    """An index that does not depend on the forest, as numbers if the graph has them."""
    if isinstance(index, slice):
        return slice(*(_plain(reader, i) for i in (index.start, index.stop, index.step)))
    if index is None or isinstance(index, int):
        return index
    known = reader.known_now(index)
    if known is None:
        raise NotRowwiseError("an index that is not constant")
    return int(known)


@read_op.register
def _by_arrays(op: AdvancedSubtensor, reader, var):
    array, *arrays = var.owner.inputs
    if array not in reader.seeing or any(v in reader.seeing for v in arrays):
        raise NotRowwiseError("an index that depends on it")
    found = reader.read(array)
    indices = list(indices_from_subtensor(arrays, op.idx_list))
    indices += [slice(None)] * (found.var.ndim - len(indices))
    own = indices[found.axis]
    rest = [i for k, i in enumerate(indices) if k != found.axis]
    if rest and not any(isinstance(i, slice) for i in indices):
        return _one_entry_per_row(reader, found, indices, own)
    if isinstance(own, slice) or any(i != slice(None) for i in rest if isinstance(i, slice)):
        raise NotRowwiseError(str(op))
    if not all(isinstance(i, slice) for i in rest) or own.ndim != 1 or found.index is not None:
        raise NotRowwiseError(f"{op}: rows taken by a matrix, or twice")
    own = own.nonzero()[0] if own.dtype == "bool" else own
    return Aligned(found.var, found.axis, reader.same_index(own))


def _one_entry_per_row(reader, found, indices, own):
    """``x[arange(n), k]``: entry ``k[i]`` of row i."""
    ndim = max(i.ndim for i in indices)
    column = own.ndim == ndim and all(own.type.broadcastable[1:])
    if found.index is not None or not column or not _counts_rows(reader, own):
        raise NotRowwiseError("rows taken out of order")
    taken = []
    for k, i in enumerate(indices):
        if k == found.axis:
            counter = pt.arange(found.var.shape[found.axis])
            taken.append(counter.dimshuffle(0, *["x"] * (ndim - 1)))
        else:
            taken.append(reader.take(i, 0 if i.ndim == ndim else -1, None))
    return Aligned(found.var[tuple(taken)], 0, None)


def _counts_rows(reader, index):
    """Whether an index is certainly 0, 1, .. n - 1: constants, or a range over the rows."""
    n = reader.outputs.type.shape[0]
    known = reader.known_now(index)
    if known is not None:
        return np.array_equal(known.reshape(-1), np.arange(n))
    while index.owner and isinstance(index.owner.op, DimShuffle | Reshape):
        index = index.owner.inputs[0]
    if not (index.owner and isinstance(index.owner.op, ARange)):
        return False
    start, stop, step = index.owner.inputs
    if not (reader.known_now(start) == 0 and reader.known_now(step) == 1):
        return False
    if not (stop.owner and isinstance(stop.owner.op, Subtensor)):
        return False
    shape, *place = stop.owner.inputs
    place = indices_from_subtensor(place, stop.owner.op.idx_list)
    if not (shape.owner and isinstance(shape.owner.op, Shape)) or len(place) != 1:
        return False
    [array] = shape.owner.inputs
    if array not in reader.seeing:
        return False
    found = reader.read(array)
    return found.index is None and reader.known_now(place[0]) % found.var.ndim == found.axis
