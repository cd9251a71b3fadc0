"""Likelihood terms of single rows, cut out of a model's graph.

A term is row-wise if its entry i is a function of row i of the forest's outputs and of numbers that
do not depend on the forest. This is decided from the Ops between the two, each of which must act on
each row separately and in the same way (an allow-list, below); anything else is `NotRowwiseError`,
never a guess. The result is a graph over *some* rows: subexpressions that do not depend on the
forest are cut off, become data, and are indexed by those rows.

Indexing makes a term of one row a term of several: ``mu[group]`` has as many entries as ``group``,
and entry j depends on row ``group[j]``. Entries of terms are called units.
"""

from dataclasses import dataclass, field
from functools import singledispatch

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.op import Op
from pytensor.graph.traversal import graph_inputs
from pytensor.tensor.basic import Alloc, ARange, Join
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import Reshape, Shape
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor, indices_from_subtensor

from pymc_trees.targets.graph import (
    Term,
    UnsupportedModelError,
    dependent_on,
    log_indicator,
    passes_through,
)


class NotRowwiseError(UnsupportedModelError):
    """An expression is not known to act row by row; the message names the Op."""


class MixedRowsError(NotRowwiseError):
    """An Op between the two certainly combines several rows."""


@dataclass
class Aligned:
    """An expression over some units, made from one over all of them."""

    var: Variable
    axis: int
    """Axis of the rows, or of the units once ``index`` is set."""
    index: Variable | None = None
    """Row of each unit; None where units are rows."""


@dataclass
class FreeInput:
    """An expression that does not depend on the forest, and the input that replaces it."""

    expression: Variable
    input: Variable
    """float64, with the number of dimensions of the expression, but at least one."""


@dataclass
class UnitTerm:
    """Log-likelihood of single units of a term."""

    value: Variable
    """(u,) log-likelihood of the requested units."""
    outputs: Variable
    """(u, K) input: the forest's outputs at the row of each."""
    rows: Variable
    """(u,) int64 input: row of each unit."""
    units: Variable
    """(u,) int64 input: number of each unit; not used where units are rows."""
    index: Variable | None
    """Row of each unit, an expression; None where units are rows."""
    free: list[FreeInput]


@dataclass
class Reader:
    """State of the reading of one term."""

    outputs: Variable
    dependent: set[Variable]
    some_outputs: Variable
    rows: Variable = field(default_factory=lambda: pt.lvector("rows"))
    units: Variable = field(default_factory=lambda: pt.lvector("units"))
    free: list[FreeInput] = field(default_factory=list)
    memo: dict = field(default_factory=dict)
    indices: list[Variable] = field(default_factory=list)
    """Indices of rows found so far."""

    def read(self, var: Variable) -> Aligned:
        """Expression that depends on the forest, over some units."""
        if var is self.outputs:
            return Aligned(self.some_outputs, 0)
        if var not in self.memo:
            inner = passes_through(var)
            if inner is not None:
                self.memo[var] = self.read(inner)
            else:
                self.memo[var] = read_op(var.owner.op, self, var)
        return self.memo[var]

    def take(
        self, var: Variable, axis: int, index: Variable | None, full: bool = False
    ) -> Variable:
        """Expression that does not depend on the forest, at the units if it has an entry for each.

        With ``full`` it keeps an entry for each; otherwise one number may stand for all.
        """
        known = None if full else self.known_now(var)
        narrow = all(b or k == axis for k, b in enumerate(var.type.broadcastable))
        if narrow and known is not None and known.size and (known == known.flat[0]).all():
            # one number for all rows, such as that no count is negative: checks of it fall away
            return pt.constant(np.full((1,) * var.ndim, known.flat[0], dtype=var.type.dtype))
        new = self._input(var)
        if axis >= 0 and not var.type.broadcastable[axis]:
            at = self.rows if index is None else self.units
            new = new[(slice(None),) * axis + (at,)]
        elif var.ndim == 0:
            new = new[0]
        return pt.neq(new, 0.0) if var.type.dtype == "bool" else new.astype(var.type.dtype)

    def _input(self, var):
        for known in self.free:
            if known.expression is var:
                return known.input
        shape = tuple(1 if b else None for b in var.type.broadcastable)
        new = pt.tensor(f"free_{len(self.free)}", dtype="float64", shape=shape or (1,))
        self.free.append(FreeInput(var, new))
        return new

    def same_index(self, index: Variable) -> Variable:
        """A previously found index that certainly has the same values, else this one."""
        known = self.known_now(index)
        for other in self.indices:
            numbers = self.known_now(other)
            if other is index or (
                known is not None and numbers is not None and np.array_equal(known, numbers)
            ):
                return other
        self.indices.append(index)
        return index

    def known_now(self, var: Variable) -> np.ndarray | None:
        """Values of an expression of constants and shapes only, else None."""
        if isinstance(var, Constant):
            return np.asarray(var.data)
        roots = graph_inputs([var])  # shared variables too: model data may be set anew
        if var in self.dependent or not all(
            v is self.outputs or isinstance(v, Constant) for v in roots
        ):
            return None
        if not isinstance(var.type, pt.TensorType):
            var = pt.as_tensor(var)
        zero = np.zeros(self.outputs.type.shape)
        return var.eval({self.outputs: zero}, on_unused_input="ignore", mode="FAST_COMPILE")


@singledispatch
def read_op(op: Op, reader: Reader, var: Variable) -> Aligned:
    """Result ``var`` of an Op, over some units; `row_ops` gives the rules."""
    raise NotRowwiseError(str(op))


def read_rows(term: Term, outputs: Variable) -> list[UnitTerm]:
    """Cut the log-likelihood of single units out of a term.

    Parameters
    ----------
    term : Term
        Summand of the log-likelihood.
    outputs : (n, K) variable
        The forest's outputs, an input of it.

    Returns
    -------
    units : list of UnitTerm
        One for the term and the conditions on its units, and one for each condition on other units,
        for example on the rows if the term indexes them.

    Raises
    ------
    NotRowwiseError
        Names the Op that mixes rows, or is not supported.
    """
    n, n_values = outputs.type.shape
    if n == 1:
        raise NotRowwiseError("a single row")  # broadcasting could be mistaken for alignment
    some = pt.tensor("some_outputs", dtype="float64", shape=(None, n_values))
    reader = Reader(outputs, dependent_on([term.value, *term.conditions], outputs), some)
    aligned = reader.read(term.value)
    value = sum_units(aligned)
    others = []
    for condition in term.conditions:
        holds = reader.read(condition)
        if holds.index is not aligned.index:
            others += read_rows(log_indicator(condition), outputs)
            continue
        across = [k for k in range(holds.var.ndim) if k != holds.axis]
        everywhere = pt.all(holds.var, axis=across) if across else holds.var
        value = pt.switch(everywhere, value, -np.inf)
    unit = UnitTerm(
        value.astype("float64"), some, reader.rows, reader.units, aligned.index, reader.free
    )
    return [unit, *others]


def sum_units(aligned: Aligned) -> Variable:
    """Sum over every axis but that of the units."""
    others = [k for k in range(aligned.var.ndim) if k != aligned.axis]
    return aligned.var.sum(axis=others) if others else aligned.var


# ------------------------ Ops that act on rows separately and alike, and how each of them is read
#
# This is an allow-list. Each rule returns the axis of the rows after the Op, given that before
# it, and raises an error if the Op would mix rows.


def _common(reader: Reader, variables: list[Variable]) -> tuple[int, Variable | None]:
    """Axis and index shared by all inputs that depend on the forest."""
    read = [reader.read(v) for v in variables if v in reader.dependent]
    first = read[0]
    for other in read[1:]:
        if other.axis != first.axis or other.index is not first.index:
            raise MixedRowsError("rows on different axes, or taken by different indices")
    return first.axis, first.index


def _inputs(reader, variables, axis, index, full=False):
    return [
        reader.read(v).var if v in reader.dependent else reader.take(v, axis, index, full)
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
    seen, other = (left, right) if left in reader.dependent else (right, left)
    if other in reader.dependent:
        raise NotRowwiseError(f"{op} of two that depend on it")
    aligned = reader.read(seen)
    if aligned.axis == (left.ndim - 1 if seen is left else max(0, right.ndim - 2)):
        raise MixedRowsError(f"{op} over the rows")
    pair = [aligned.var, reader.take(other, -1, None, full=True)]
    axis = 0 if seen is left else left.ndim - 1
    return Aligned(op(*(pair if seen is left else pair[::-1])), axis, aligned.index)


@read_op.register
def _dimshuffle(op: DimShuffle, reader, var):
    aligned = reader.read(var.owner.inputs[0])
    if aligned.axis not in op.new_order:
        raise NotRowwiseError(str(op))
    return Aligned(
        aligned.var.dimshuffle(op.new_order), op.new_order.index(aligned.axis), aligned.index
    )


@read_op.register
def _reduce(op: CAReduce, reader, var):
    aligned = reader.read(var.owner.inputs[0])
    if op.axis is None or aligned.axis in op.axis:
        raise MixedRowsError(f"{op} over the rows")
    axis = aligned.axis - sum(k < aligned.axis for k in op.axis)
    return Aligned(op(aligned.var), axis, aligned.index)


@read_op.register
def _cumulate(op: CumOp, reader, var):
    aligned = reader.read(var.owner.inputs[0])
    if op.axis is None or op.axis % aligned.var.ndim == aligned.axis:
        raise MixedRowsError(f"{op} over the rows")
    return Aligned(op(aligned.var), aligned.axis, aligned.index)


@read_op.register
def _symbolic(op: OpFromGraph, reader, var):
    """An Op that contains a graph: softmax, logsumexp."""
    node = var.owner
    inside = op.fgraph.bind(node.inputs)[node.outputs.index(var)]
    reader.dependent |= dependent_on([inside], reader.outputs)
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
    if any(v in reader.dependent for v in numbers):
        raise NotRowwiseError("an index that depends on it")
    aligned = reader.read(array)
    indices = list(indices_from_subtensor(numbers, op.idx_list))
    indices += [slice(None)] * (aligned.var.ndim - len(indices))
    if not _is_whole(reader, indices[aligned.axis]):
        raise MixedRowsError(f"{op} of the rows")
    indices[aligned.axis] = slice(None)
    before = indices[: aligned.axis]
    axis = aligned.axis - sum(not isinstance(i, slice) for i in before)
    return Aligned(aligned.var[tuple(_plain(reader, i) for i in indices)], axis, aligned.index)


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
    if array not in reader.dependent or any(v in reader.dependent for v in arrays):
        raise NotRowwiseError("an index that depends on it")
    aligned = reader.read(array)
    indices = list(indices_from_subtensor(arrays, op.idx_list))
    indices += [slice(None)] * (aligned.var.ndim - len(indices))
    own = indices[aligned.axis]
    rest = [i for k, i in enumerate(indices) if k != aligned.axis]
    if rest and not any(isinstance(i, slice) for i in indices):
        return _one_entry_per_row(reader, aligned, indices, own)
    if isinstance(own, slice) or any(i != slice(None) for i in rest if isinstance(i, slice)):
        raise NotRowwiseError(str(op))
    if not all(isinstance(i, slice) for i in rest) or own.ndim != 1 or aligned.index is not None:
        raise NotRowwiseError(f"{op}: rows taken by a matrix, or twice")
    own = own.nonzero()[0] if own.dtype == "bool" else own
    return Aligned(aligned.var, aligned.axis, reader.same_index(own))


def _one_entry_per_row(reader, aligned, indices, own):
    """``x[arange(n), k]``: entry ``k[i]`` of row i."""
    ndim = max(i.ndim for i in indices)
    column = own.ndim == ndim and all(own.type.broadcastable[1:])
    if aligned.index is not None or not column or not _counts_rows(reader, own):
        raise NotRowwiseError("rows taken out of order")
    taken = []
    for k, i in enumerate(indices):
        if k == aligned.axis:
            counter = pt.arange(aligned.var.shape[aligned.axis])
            taken.append(counter.dimshuffle(0, *["x"] * (ndim - 1)))
        else:
            taken.append(reader.take(i, 0 if i.ndim == ndim else -1, None))
    return Aligned(aligned.var[tuple(taken)], 0, None)


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
    if array not in reader.dependent:
        return False
    aligned = reader.read(array)
    return aligned.index is None and reader.known_now(place[0]) % aligned.var.ndim == aligned.axis
