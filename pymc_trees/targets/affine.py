"""Linear maps read from a graph: which coefficients of which variables make up each entry.

An expression that is affine in some variables v, w, ... is written, entry by entry, as

    e_i = offset_i + sum_r factor_ir (scale v)_{index_ir} + sum_r ...(w) + ...

The index depends on data alone. Factors that depend on other variables of the model through one
number for all rows, or through one number for each coefficient, are kept apart as ``scale``. The
map is read from the Ops between the expression and the variables, each of which must be linear;
anything else raises `NotRecognisedError`, never a guess.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import explicit_graph_inputs, toposort
from pytensor.scalar import basic as scalars
from pytensor.tensor.basic import Alloc, Join, MakeVector
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import Reshape
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
    indices_from_subtensor,
)

from pymc_trees.targets.graph import (
    NotRecognisedError,
    dependent_on,
    depends_on,
    passes_through,
)


@dataclass(frozen=True)
class LinearMap:
    """What one variable contributes to each entry of an expression."""

    index: Variable
    """Of the expression's shape and one axis more: which entries of the flattened variable."""
    factor: Variable
    """Of the same shape: what each is multiplied by."""
    scale: Variable | None = None
    """Of one entry, or of the shape of the variable: what the variable is multiplied by first."""
    is_variable: bool = False
    """Whether the expression is the variable itself, times its scale."""

    @property
    def folded(self) -> Variable:
        """The factors with the scale among them."""
        if self.scale is None:
            return self.factor
        flat = self.scale.reshape((-1,))
        return self.factor * (flat[0] if all(self.scale.type.broadcastable) else flat[self.index])

    def each(self, do: Callable[[Variable], Variable]) -> "LinearMap":
        """The same function of index and factor."""
        return LinearMap(do(self.index), do(self.factor), self.scale)


@dataclass(frozen=True)
class Affine:
    """An expression as an offset and what each variable contributes."""

    offset: Variable | None
    """None for 0."""
    maps: dict[Variable, LinearMap] = field(default_factory=dict)

    def each(self, do: Callable[[Variable], Variable]) -> "Affine":
        """Index, factor and offset after an Op that moves entries about."""
        offset = None if self.offset is None else do(self.offset[..., None])[..., 0]
        return Affine(offset, {v: one.each(do) for v, one in self.maps.items()})

    def times(self, factor: Variable, varies: bool, spread: bool = False) -> "Affine":
        """The product with an expression of the same shape, or of one that is broadcast to it.

        Parameters
        ----------
        varies : bool
            Whether the factor depends on variables of the model, and may be kept apart as a scale.
        spread : bool
            Whether the expression is broadcast to the factor, too.
        """
        offset = None if self.offset is None else self.offset * factor
        maps = {}
        for v, one in self.maps.items():
            scalar = all(factor.type.broadcastable)
            if varies and (scalar or one.is_variable):
                by = factor.reshape((-1,))[0]
                if one.is_variable:
                    by = pt.broadcast_to(factor, v.shape)
                scale = by if one.scale is None else one.scale * by
                maps[v] = LinearMap(one.index, one.factor, scale, one.is_variable)
            else:
                product = one.factor * factor[..., None]
                index = pt.broadcast_to(one.index, product.shape) if spread else one.index
                maps[v] = LinearMap(index, product, one.scale)
        return Affine(offset, maps)


def read_affine_map(
    expression: Variable, variables: list[Variable], changing: set[Variable]
) -> Affine:
    """An expression as an affine function of some variables.

    Parameters
    ----------
    expression : Variable
    variables : list of Variable
        Inputs of its graph.
    changing : set of Variable
        Inputs that are values of variables of the model, and not data.

    Raises
    ------
    NotRecognisedError
        When it is not known to be one.
    """
    seeing: set[Variable] = set()
    for v in variables:
        seeing |= dependent_on([expression], v)
    return _Reader(set(variables), seeing, changing).read(expression)


def read_affine_parts(
    expressions: list[Variable], variables: list[Variable], changing: set[Variable]
) -> dict[Variable, Affine]:
    """The parts of expressions that are affine in some variables, as large as possible.

    All that the expressions depend on of the variables are these parts: numbers that leave every
    part as it is leave the expressions as they are.

    Parameters
    ----------
    expressions : list of Variable
    variables, changing
        As of `read_affine_map`.
    """
    seeing: set[Variable] = set()
    for v in variables:
        seeing |= dependent_on(expressions, v)
    reader = _Reader(set(variables), seeing, changing)
    parts: dict[Variable, Affine] = {}
    known: dict[Variable, Affine | None] = {}

    def read(v: Variable) -> Affine | None:
        try:
            return reader.read(v)
        except (NotImplementedError, TypeError, ValueError):  # also of Ops with other operands
            return None

    nodes = list(toposort(expressions))
    for v in [v for node in nodes for v in (*node.inputs, *node.outputs)] + expressions:
        if v in seeing and v not in known:
            known[v] = read(v)
    for node in nodes:
        if any(v in seeing and known[v] is None for v in node.outputs):
            parts |= {v: one for v in node.inputs if (one := known.get(v)) is not None}
    return parts | {e: one for e in expressions if (one := known.get(e)) is not None}


class _Reader:
    """Reads an expression, the Op that makes it last."""

    def __init__(self, variables, seeing, changing):
        self.variables, self.seeing, self.changing = variables, seeing, changing
        self.known: dict[Variable, Affine] = {}

    def read(self, e: Variable) -> Affine:
        if e not in self.known:
            self.known[e] = self._read(e)
        return self.known[e]

    def _read(self, e: Variable) -> Affine:
        if e in self.variables:
            shape = (*e.type.shape, 1)
            index = pt.constant(np.arange(np.prod(shape, dtype=int)).reshape(shape))
            return Affine(None, {e: LinearMap(index, pt.constant(np.ones(shape)), None, True)})
        if e not in self.seeing:
            return Affine(e)
        inner = passes_through(e)
        if inner is not None and inner.ndim == e.ndim and inner.type.shape == e.type.shape:
            return self.read(inner)
        op, inputs = e.owner.op, e.owner.inputs
        if isinstance(op, DimShuffle):
            order = op.new_order
            return self.read(inputs[0]).each(lambda a: a.dimshuffle((*order, a.ndim - 1)))
        if isinstance(op, Elemwise):
            return self._elementwise(op.scalar_op, inputs, e)
        if isinstance(op, Subtensor | AdvancedSubtensor):
            return self._entries(op, inputs, e)
        if isinstance(op, IncSubtensor | AdvancedIncSubtensor) and op.set_instead_of_inc:
            return self._set(op, *inputs)
        if isinstance(op, Reshape) and inputs[0] in self.seeing:
            shape = tuple(e.shape)
            return self.read(inputs[0]).each(lambda a: a.reshape((*shape, a.shape[-1])))
        if isinstance(op, CAReduce) and isinstance(op.scalar_op, scalars.Add):
            return self._sum(self.read(inputs[0]), op.axis, inputs[0].ndim)
        if isinstance(op, Alloc) and not any(v in self.seeing for v in inputs[1:]):
            return self._broadcast(self.read(inputs[0]), e)
        if isinstance(op, CumOp) and op.mode == "add" and inputs[0].ndim == 1:
            n = inputs[0].shape[0]
            row = self.read(inputs[0]).each(lambda a: pt.broadcast_to(a, (n, n, a.shape[-1])))
            return self._sum(row.times(pt.tri(n), varies=False), (1,), 2)
        core = op.core_op if isinstance(op, Blockwise) else op
        if isinstance(core, Dot):
            return self._product(*inputs)
        if isinstance(op, Join):
            return self._joined(op.axis, inputs, e)
        if isinstance(op, MakeVector):
            return self._joined(0, [v.dimshuffle("x") for v in inputs], e, scalars=inputs)
        raise NotRecognisedError(str(op))

    def _varies(self, v: Variable) -> bool:
        inputs = set(explicit_graph_inputs([v])) & self.changing
        return any(depends_on([v], one, set()) for one in inputs)  # and not on its shape alone

    def _broadcast(self, read: Affine, e: Variable) -> Affine:
        """To the shape of an expression."""
        maps = {v: self._widened(one, e) for v, one in read.maps.items()}
        offset = read.offset
        if offset is not None and offset.type.broadcastable != e.type.broadcastable:
            offset = pt.broadcast_to(offset, tuple(e.shape))
        return Affine(offset, maps)

    @staticmethod
    def _widened(one: LinearMap, e: Variable) -> LinearMap:
        pattern = one.index.type.broadcastable[:-1]
        if pattern == e.type.broadcastable:
            return one
        shape = tuple(e.shape)
        return one.each(lambda a: pt.broadcast_to(a, (*shape, a.shape[-1])))

    def _elementwise(self, kind, inputs, e) -> Affine:
        bound = [v for v in inputs if v in self.seeing]
        if isinstance(kind, scalars.Identity | scalars.Cast) and e.dtype == "float64":
            return self.read(inputs[0])
        if isinstance(kind, scalars.Neg):
            return self.read(inputs[0]).times(pt.constant(-1.0), varies=False)
        if isinstance(kind, scalars.Add):
            return self._added([self._broadcast(self.read(v), e) for v in inputs])
        if isinstance(kind, scalars.Sub):
            left, right = (self._broadcast(self.read(v), e) for v in inputs)
            return self._added([left, right.times(pt.constant(-1.0), varies=False)])
        if isinstance(kind, scalars.Mul) and len(bound) == 1:
            others = [v for v in inputs if v not in self.seeing]
            read = self._broadcast(self.read(bound[0]), e)
            for other in others:
                read = read.times(other, self._varies(other))
            return read
        if isinstance(kind, scalars.TrueDiv) and inputs[1] not in self.seeing:
            by = 1.0 / inputs[1]
            return self._broadcast(self.read(inputs[0]), e).times(by, self._varies(by))
        if isinstance(kind, scalars.Switch) and inputs[0] not in self.seeing:
            chosen = pt.neq(inputs[0], 0)
            yes, no = (self._broadcast(self.read(v), e) for v in inputs[1:])
            # not a product: 0 times infinity is no number
            yes = yes.each(lambda a: pt.switch(chosen[..., None], a, 0))
            no = no.each(lambda a: pt.switch(chosen[..., None], 0, a))
            return self._added([yes, no])
        raise NotRecognisedError(str(kind))

    def _added(self, parts: list[Affine]) -> Affine:
        offsets = [one.offset for one in parts if one.offset is not None]
        maps: dict[Variable, LinearMap] = {}
        for part in parts:
            for v, new in part.maps.items():
                old = maps.get(v)
                maps[v] = new if old is None else self._both(old, new)
        return Affine(sum(offsets[1:], offsets[0]) if offsets else None, maps)

    @staticmethod
    def _both(old: LinearMap, new: LinearMap) -> LinearMap:
        index = pt.concatenate([old.index, new.index], axis=-1)
        if old.scale is None and new.scale is None:
            return LinearMap(index, pt.concatenate([old.factor, new.factor], axis=-1))
        return LinearMap(index, pt.concatenate([old.folded, new.folded], axis=-1))

    def _entries(self, op, inputs, e) -> Affine:
        array, *numbers = inputs
        if any(v in self.seeing for v in numbers):
            raise NotRecognisedError(f"{op}, an index that depends on it")
        indices = tuple(indices_from_subtensor(numbers, op.idx_list))
        return self.read(array).each(lambda a: a[indices])

    def _set(self, op, array, new, *numbers) -> Affine:
        """An array after some of its entries were replaced."""
        if any(v in self.seeing for v in numbers):
            raise NotRecognisedError(f"{op}, an index that depends on it")
        at = tuple(indices_from_subtensor(numbers, op.idx_list))
        before, after = self.read(array), self._broadcast(self.read(new), array[at])

        def offset_of(read, like):
            return pt.zeros(tuple(like.shape)) if read.offset is None else read.offset

        offset = pt.set_subtensor(offset_of(before, array)[at], offset_of(after, array[at]))
        maps = {}
        for v in before.maps | after.maps:
            pair = [read.maps.get(v) for read in (before, after)]
            widths = {one.index.type.shape[-1] for one in pair if one is not None}
            if len(widths) > 1 or None in widths:
                raise NotRecognisedError(f"{op} of sums of several entries")
            index, factor = (
                pt.zeros((*tuple(array.shape), *widths), dtype=dtype)
                for dtype in ("int64", "float64")
            )
            if pair[0] is not None:
                index, factor = pair[0].index, pair[0].folded
            new_index, new_factor = pt.zeros((1,), dtype="int64"), pt.zeros((1,))
            if pair[1] is not None:
                new_index, new_factor = pair[1].index, pair[1].folded
            maps[v] = LinearMap(
                pt.set_subtensor(index[at], new_index), pt.set_subtensor(factor[at], new_factor)
            )
        return Affine(offset, maps)

    def _sum(self, read: Affine, axis, ndim: int) -> Affine:
        axes = tuple(range(ndim)) if axis is None else tuple(axis)
        left = [k for k in range(ndim) if k not in axes]

        def moved(a):
            a = a.transpose(*left, *axes, ndim)
            return a.reshape((*(a.shape[k] for k in range(len(left))), -1))

        offset = None if read.offset is None else read.offset.sum(axis=axes)
        return Affine(offset, {v: one.each(moved) for v, one in read.maps.items()})

    def _product(self, left: Variable, right: Variable) -> Affine:
        """The sum over k of ``left[i, k] right[k, j]``, one of which is affine in the variables."""
        if left in self.seeing and right in self.seeing:
            raise NotRecognisedError("the product of two of them")
        if left.ndim != 2 or right.ndim != 2:
            raise NotRecognisedError("a product of stacks of matrices")
        if left in self.seeing:
            read, by = self.read(left).each(lambda a: a[:, :, None]), right[None, :, :]
        else:
            read, by = self.read(right).each(lambda a: a[None]), left[:, :, None]
        # a whole matrix is no scale, even where it varies
        return self._sum(read.times(by, varies=False, spread=True), (1,), 3)

    def _joined(self, axis, inputs, e, scalars=None) -> Affine:
        reads = []
        for k, v in enumerate(inputs):
            source = v if scalars is None else scalars[k]
            read = self.read(source)
            reads.append(read.each(lambda a: a[None]) if scalars is not None else read)
        offsets = [
            pt.zeros(tuple(v.shape)) if one.offset is None else one.offset
            for one, v in zip(reads, inputs, strict=True)
        ]
        plain = all(one.offset is None for one in reads)
        maps = {}
        for v in {v for one in reads for v in one.maps}:
            widths = [one.maps[v].index.shape[-1] for one in reads if v in one.maps]
            most = widths[0] if len(widths) == 1 else pt.max(pt.stack(widths))
            index, factor = [], []
            for one, part in zip(reads, inputs, strict=True):
                shape = (*tuple(part.shape), most)
                found = one.maps.get(v)
                if found is None:
                    index.append(pt.zeros(shape, dtype="int64"))
                    factor.append(pt.zeros(shape))
                    continue
                width = found.index.shape[-1]
                room = pt.zeros(shape, dtype="int64"), pt.zeros(shape)
                index.append(room[0][..., :width].set(found.index))
                factor.append(room[1][..., :width].set(found.folded))
            maps[v] = LinearMap(pt.concatenate(index, axis), pt.concatenate(factor, axis))
        return Affine(None if plain else pt.concatenate(offsets, axis), maps)
