"""Ridges of a posterior: what moves together with the level of a forest while no row notices.

In ``log rate = f(X) + b`` the rows depend on the sum alone: when all of f rises by a number and b
falls by it, only the priors change. A ridge is such a direction in the values of a forest and of
other variables. It is read from the graph: the parameters of every term that depends on the forest
are functions of parts that are affine in the forest and in candidates (`affine`), and a direction
is a ridge if it leaves each of these parts as it is. The linear equations that say so have numbers
of the data alone, and are solved once. Anything else that depends on what moves must be the
prior of a free variable, or a small Potential.

Where the prior of what moves has a location that other variables make up, as in group effects
around their mean, there is one more ridge in which these move along.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.distributions.transforms import Ordered
from pytensor.graph.basic import Constant, Variable, equal_computations
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from scipy import sparse

from pymc_trees.distributions.tree_variable import evaluations, is_tree_variable
from pymc_trees.targets.affine import LinearMap, read_affine_parts
from pymc_trees.targets.graph import (
    depends_on,
    moves_rows,
    named_parameters,
    parameters_of,
    read_graph,
    without_picks,
)

RISING = {"normal", "normal_vector", "monotone", "linear", "normal_gamma"}
"""Leaf priors, by name, of which a leaf value may be any number and is added to an output."""
LOCATIONS = {
    "normal": 0,
    "t": 1,
    "cauchy": 0,
    "laplace": 0,
    "logistic": 0,
    "gumbel": 0,
    "multivariate_normal": 0,
    "multivariate_studentt": 1,
}
"""By the name of the Op, which parameter of a random variable shifts it."""
MOST_ENTRIES = 10_000
"""Of variables, or of data behind a Potential, whose density may change with a ridge."""
MOST_UNEQUAL = 500
"""Entries of a variable that may move by different numbers; larger ones move by one number."""
EXACT = 1e-11
"""Largest change of a row that counts as none, relative to what cancels in it."""


class Shift(NamedTuple):
    """How a variable moves when an output of the forest rises by 1."""

    rv: Variable
    by: np.ndarray
    """Of the shape of its value."""
    factor: Variable | None
    """What this is multiplied by, an expression of values that do not move."""


class Ridge(NamedTuple):
    """A direction that leaves every row as it is."""

    output: int
    """Which output of the forest rises."""
    shifts: list[Shift]
    others: dict[str, np.ndarray]
    """By the names of other forests, what their outputs rise by."""


class _Column(NamedTuple):
    """A variable in the parts of the rows."""

    matrix: sparse.csr_matrix
    """(entries of all parts, size of the variable)."""
    scale: Variable | None


@dataclass
class _Place:
    """Where the numbers of a linear map stand among those of all, and its scale."""

    index: int
    factor: int
    scale: Variable | None


class Ridges:
    """Ridges of one forest.

    Parameters
    ----------
    model : pymc.Model
        Without named dimensions.
    forest : Variable
    others : sequence of Variable
        Other forests that may move with it.
    """

    def __init__(self, model: pm.Model, forest: Variable, others: Sequence[Variable] = ()):
        self.model, self.forest = model, forest
        self._expressions: list[Variable] = []
        self._places: list[dict[Variable, _Place]] = []
        """Of each part of the rows."""
        self._locations: dict[tuple[Variable, Variable], _Place] = {}
        """Of a variable and one in its location."""
        self._unusable: set[Variable] = set()
        self.candidates: list[Variable] = []
        self.others: list[Variable] = []
        if may_rise(forest):
            self._read(others)
        self._numbers: Any = None
        if self._places:  # run once, as they stand
            mode = pytensor.compile.mode.Mode(linker="py", optimizer=None)
            self._numbers = pytensor.function([], self._expressions, mode=mode)

    def shared(self) -> list[Variable]:
        """Data, which may be replaced, that the ridges were solved for."""
        return [] if self._numbers is None else self._numbers.get_shared()

    # -------------------------------------------------------------------------------- Reading

    def _read(self, others: Sequence[Variable]) -> None:
        model, forest = self.model, self.forest
        self._graph = read_graph(model, forest)
        terms, potentials = self._graph.terms, self._graph.potentials
        rows = [v for term in terms for v in parameters_of(term)] + potentials
        blockers = set(model.basic_RVs)
        seen = set(ancestors(rows, blockers=blockers)) & blockers
        self.candidates = [rv for rv in model.free_RVs if rv in seen and self._may_move(rv)]
        self.others = [rv for rv in others if rv in seen and may_rise(rv)]
        if not self.candidates and not self.others:
            return
        self._stands = {rv: self._stand(rv) for rv in seen}
        inside = clone_replace(rows, self._stands, rebuild_strict=False)
        inside = without_picks(inside)
        self._outputs: dict[Variable, Variable] = {}
        for rv in [forest, *self.others]:
            layout, name = rv.owner.op.layout, f"outputs_{rv.name}"
            shape = (layout.n_rows, layout.n_outputs)
            stand = self._outputs[rv] = pt.TensorType("float64", shape=shape)(name)
            places = evaluations(inside, self._stands[rv])
            replaced = {one.outputs: stand for one in places}
            inside = clone_replace(inside, replaced, rebuild_strict=False)
            if any(v is self._stands[rv] for v in ancestors(inside)):
                self._unusable.add(rv)
        moving = self._outputs | {rv: self._stands[rv] for rv in self.candidates}
        changing = {*self._stands.values(), *self._outputs.values()}
        of_stand = {stand: rv for rv, stand in moving.items()}
        for affine in read_affine_parts(inside, list(moving.values()), changing).values():
            place = {}
            for stand, one in affine.maps.items():
                rv = of_stand[stand]
                found = self._placed(one)
                if found is None:
                    self._unusable.add(rv)
                else:
                    place[rv] = found
            self._places.append(place)
        if forest in self._unusable:
            self._places = []
        for rv in self.candidates if self._places else []:
            self._read_location(rv)

    def _read_location(self, rv: Variable) -> None:
        """Where other variables make up the location of a variable, how they do."""
        parameter = LOCATIONS.get(getattr(rv.owner.op, "name", ""))
        named = named_parameters(rv)
        if parameter is None or named is None:
            return
        location, blockers = named[parameter], set(self.model.basic_RVs)
        seen = set(ancestors([location], blockers=blockers)) & blockers
        stands = {v: self._stand(v) for v in seen}
        if not stands:
            return
        [inside] = clone_replace([location], stands, rebuild_strict=False)
        for parent, stand in stands.items():
            if (rv, parent) in self._locations or not self._may_move(parent):
                continue
            parts = read_affine_parts([inside], [stand], set(stands.values()))
            affine = parts.get(inside)
            if len(parts) != 1 or affine is None:
                continue
            found = self._placed(affine.maps[stand], stands)
            if found is not None and found.scale is None:
                self._locations[rv, parent] = found
                self._read_location(parent)

    def _placed(self, one: LinearMap, stands=None) -> _Place | None:
        """A linear map among the numbers of the data; None if it is not one of data alone."""
        stands = self._stands if stands is None else stands
        inputs = [*stands.values(), *getattr(self, "_outputs", {}).values()]
        if any(depends_on([one.index, one.factor], v, set()) for v in inputs):
            return None
        scale = one.scale
        asked = set(ancestors([one.index, one.factor, *([] if scale is None else [scale])]))
        shapes = {v: pt.zeros(self._shape_of(v), dtype=v.dtype) for v in inputs if v in asked}
        data = clone_replace([one.index, one.factor], shapes, rebuild_strict=False)
        if scale is not None:
            used = {rv: v for rv, v in stands.items() if depends_on([scale], v, set())}
            if any(depends_on([scale], v, set()) for v in self._outputs.values()):
                return None
            # values, and not the variables themselves, of which there would be copies
            naturals = self.model.replace_rvs_by_values(list(used))
            shapes |= dict(zip(used.values(), naturals, strict=True))
            [scale] = clone_replace([scale], shapes, rebuild_strict=False)
        self._expressions += data
        return _Place(len(self._expressions) - 2, len(self._expressions) - 1, scale)

    def _stand(self, rv: Variable) -> Variable:
        """An input in place of a variable, with its static shape if it may move."""
        shape = self._shape_of(rv) if self._may_move(rv) else rv.type.shape
        return pt.TensorType(rv.dtype, shape=shape)(rv.name)

    def _shape_of(self, v: Variable) -> tuple[int, ...]:
        if None not in v.type.shape:
            return v.type.shape
        return tuple(int(k) for k in self.model.eval_rv_shapes()[v.name])

    def _may_move(self, rv: Variable) -> bool:
        """Whether a variable is free, may be any number, and neither sees trees nor moves rows."""
        model = self.model
        if not any(rv is free for free in model.free_RVs) or is_tree_variable(rv):
            return False
        transform, value = model.rvs_to_transforms.get(rv), model.rvs_to_values[rv]
        is_ordered = isinstance(transform, Ordered) and not transform.positive
        if rv.dtype != "float64" or value.dtype != "float64":
            return False
        if not (transform is None or is_ordered):
            return False
        return not any(is_tree_variable(v) for v in ancestors([rv])) and not moves_rows(model, rv)

    # -------------------------------------------------------------------------------- Solving

    def solve(self) -> list[Ridge]:
        """The ridges, at the present data."""
        if self._numbers is None:
            return []
        self._data = self._numbers()
        columns = {
            rv: column
            for rv in [self.forest, *self.others, *self.candidates]
            if rv not in self._unusable and (column := self._column(rv)) is not None
        }
        if self.forest not in columns:
            return []
        own = self._levels(self.forest, columns[self.forest])
        ridges = []
        for k in range(own.shape[1]):
            target = -own[:, k]
            if not target.any() or not _output_may_rise(self.forest, k):
                continue
            for rv in self.candidates:
                if rv in columns:
                    ridges += self._along(columns, k, target, rv)
            for rv in self.others:
                if rv in columns and _same(columns[rv].scale, columns[self.forest].scale):
                    levels = self._levels(rv, columns[rv])
                    levels[:, [not _output_may_rise(rv, j) for j in range(levels.shape[1])]] = 0.0
                    found = _solve(sparse.csr_matrix(levels), target)
                    if found is not None:
                        ridges.append(Ridge(k, [], {rv.name: found}))
        return ridges

    def _along(self, columns, k, target, rv) -> list[Ridge]:
        """Ridges in which a variable moves, alone and with those that make up its location."""
        column, level = columns[rv], columns[self.forest].scale
        natural = self._moved(rv, column.matrix, target)
        if natural is None:
            return []
        factor = None
        if not _same(level, column.scale):
            one = pt.constant(1.0)
            factor = (one if level is None else level) / (
                one if column.scale is None else column.scale
            )
            if not all(factor.type.broadcastable):
                if self._is_ordered(rv):
                    return []
                factor = factor.reshape(self._shape_of(rv))
            else:
                factor = factor.reshape((-1,))[0]
        moved = {rv: natural}
        ridges = [self._ridge(k, moved, factor)]
        while factor is None:
            last = list(moved)[-1]
            for (child, parent), place in self._locations.items():
                if child is last and parent not in moved:
                    found = self._moved(parent, self._location_matrix(last, parent, place), natural)
                    if found is not None:
                        break
            else:
                break
            natural, moved = found, moved | {parent: found}
            if parent in self.candidates and (
                parent not in columns or np.abs(columns[parent].matrix @ found).max() > 0
            ):
                break  # it has a place in the rows too
            ridges.append(self._ridge(k, moved, None))
        return [one for one in ridges if one is not None]

    def _location_matrix(self, rv, parent, place: _Place):
        """What the location of each entry of a variable is made of."""
        matrix, shape = self._matrix(place, parent)
        rows = np.broadcast_to(np.arange(matrix.shape[0]).reshape(shape), self._shape_of(rv))
        return matrix[rows.ravel()]

    def _ridge(self, k: int, moved: dict[Variable, np.ndarray], factor) -> Ridge | None:
        """The ridge in which some variables move, if all that depends on them may change."""
        if factor is not None:
            trees = [rv for rv in self.model.free_RVs if is_tree_variable(rv)]
            values = [self.model.rvs_to_values[rv] for rv in [*trees, *moved]]
            if any(depends_on([factor], value, set()) for value in values):
                return None
        if self.changed(list(moved)) is None:
            return None
        shifts = []
        for rv, natural in moved.items():
            by = natural.reshape(self._shape_of(rv))
            if self._is_ordered(rv):  # all rise by one number: so does the first, gaps stay
                by = np.concatenate([by[..., :1], np.zeros_like(by[..., 1:])], axis=-1)
            shifts.append(Shift(rv, by, factor))
        return Ridge(k, shifts, {})

    def changed(self, moved: list[Variable]) -> list[Variable] | None:
        """Variables and Potentials whose densities change; None where one of them may not."""
        found = list(moved)
        for rv in moved:
            graph = read_graph(self.model, rv)
            for term in graph.terms:
                if any(term is v for v in [*self._graph.terms, *found]):
                    continue
                if not self._may_change(term, moved):
                    return None
                found.append(term)
            for potential in graph.potentials:
                if any(potential is v for v in [*self._graph.potentials, *found]):
                    continue
                if not self._is_small(potential):
                    return None
                found.append(potential)
        return found

    def _may_change(self, term: Variable, moved: list[Variable]) -> bool:
        """Whether the density of a variable that does not move may change."""
        model = self.model
        if not any(term is v for v in model.free_RVs) or is_tree_variable(term):
            return False
        if any(is_tree_variable(v) for v in ancestors(term.owner.inputs)):
            return False
        # a transform whose bounds move would move the variable too
        stays = set(ancestors(model.replace_rvs_by_values([term])))
        if any(model.rvs_to_values[v] in stays for v in moved):
            return False
        return int(np.prod(self._shape_of(term))) <= MOST_ENTRIES

    def _is_small(self, potential: Variable) -> bool:
        """Whether a Potential depends on no forest, nor on many numbers."""
        inputs = list(ancestors([potential], blockers=self.model.basic_RVs))
        if any(is_tree_variable(v) for v in ancestors([potential])):
            return False
        data = [v for v in inputs if isinstance(v, Constant) or hasattr(v, "get_value")]
        arrays = [v.data if isinstance(v, Constant) else v.get_value(borrow=True) for v in data]
        return all(np.size(one) <= MOST_ENTRIES for one in arrays if isinstance(one, np.ndarray))

    def _moved(self, rv: Variable, matrix, target: np.ndarray) -> np.ndarray | None:
        """Change of a variable, as the model sees it, that changes its rows by ``target``."""
        return _solve(matrix, target, only_equal=self._is_ordered(rv))

    def _is_ordered(self, rv: Variable) -> bool:
        return self.model.rvs_to_transforms.get(rv) is not None

    def _column(self, rv: Variable) -> _Column | None:
        """A variable in the parts of all rows; None if it is scaled in different ways."""
        blocks, scales = [], []
        for place in self._places:
            shape = np.broadcast_shapes(*(self._data[v.factor].shape[:-1] for v in place.values()))
            if rv in place:
                blocks.append(self._matrix(place[rv], rv, shape)[0])
                scales.append(place[rv].scale)
            else:
                blocks.append(sparse.csr_matrix((int(np.prod(shape)), self._size(rv))))
        if not scales or not all(_same(scales[0], one) for one in scales):
            return None
        return _Column(sparse.vstack(blocks, format="csr"), scales[0])

    def _matrix(self, place: _Place, rv: Variable, shape=None):
        """(entries, size) matrix of a linear map, and the shape of the entries."""
        index, factor = self._data[place.index], self._data[place.factor]
        shape, width = factor.shape[:-1] if shape is None else shape, factor.shape[-1]
        index, factor = (np.broadcast_to(v, (*shape, width)) for v in (index, factor))
        n = int(np.prod(shape, dtype=int))
        starts = np.arange(0, n * width + 1, width) if width else np.zeros(n + 1, dtype=int)
        parts = factor.ravel().astype(np.float64), index.ravel(), starts
        return sparse.csr_matrix(parts, shape=(n, self._size(rv))), shape

    def _size(self, rv: Variable) -> int:
        if rv in self._outputs:
            return int(np.prod(self._outputs[rv].type.shape))
        return int(np.prod(self._shape_of(rv)))

    def _levels(self, rv: Variable, column: _Column) -> np.ndarray:
        """(entries, K) what each entry changes by when an output of a forest rises by 1."""
        n_outputs = rv.owner.op.layout.n_outputs
        sums = [column.matrix[:, k::n_outputs].sum(axis=1) for k in range(n_outputs)]
        return np.asarray(np.hstack(sums))


def may_rise(forest: Variable) -> bool:
    """Whether a number may be added to the leaf values of a forest."""
    return forest.owner.op.leaf_type.name in RISING


def _output_may_rise(forest: Variable, output: int) -> bool:
    """Whether an output may be any number, and not a precision."""
    return output == 0 or forest.owner.op.leaf_type.name != "normal_gamma"


def _same(one: Variable | None, other: Variable | None) -> bool:
    if one is None or other is None:
        return one is other
    return one is other or equal_computations([one], [other])


def _solve(matrix, target: np.ndarray, only_equal: bool = False) -> np.ndarray | None:
    """An exact solution of linear equations, the same number everywhere where there is one."""
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    largest = int(np.abs(target).argmax())
    if sums[largest] != 0:
        level = np.full(matrix.shape[1], target[largest] / sums[largest])
        if _is_exact(matrix, level, target):
            return level
    if only_equal or matrix.shape[1] == 1 or matrix.shape[1] > MOST_UNEQUAL:
        return None
    gram, found = (matrix.T @ matrix).toarray(), np.zeros(matrix.shape[1])
    inverse = np.linalg.pinv(gram, hermitian=True)
    for _ in range(3):  # each time with what rounding left
        found = found + inverse @ (matrix.T @ (target - matrix @ found))
    found[np.abs(found) < EXACT * np.abs(found).max()] = 0.0
    whole = np.round(found)
    found = np.where(np.abs(found - whole) < EXACT, whole, found)
    return found if _is_exact(matrix, found, target) else None


def _is_exact(matrix, change: np.ndarray, target: np.ndarray) -> bool:
    size = abs(matrix) @ np.abs(change) + np.abs(target)
    return bool(np.all(np.abs(matrix @ change - target) <= EXACT * size)) and bool(target.any())
