"""The joint draw around one likelihood: numbers at a point, sums over the rows, new values."""

from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.replace import clone_replace

from pymc_trees.core.leaves.latent.rows import latent_rows, redraw_latents
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.distributions.ops.soft_forest_rv import is_soft_forest
from pymc_trees.targets.conjugate import latent_numbers, latent_precisions
from pymc_trees.targets.graph import depends_on
from pymc_trees.targets.likelihoods.contract import rows_of
from pymc_trees.targets.likelihoods.normal import check_mean_and_sd, logs_of
from pymc_trees.targets.referenced_state import forest_data
from pymc_trees.targets.settings import compile_values, compiled_at, numbers_at
from pymc_trees.targets.soft_forest_state import SoftForestData
from pymc_trees.terms.draw import (
    Evidence,
    Marginal,
    Vectors,
    draw_leaves,
    draw_vectors,
    integrate_leaves,
    joined,
    without,
)
from pymc_trees.terms.gram import DenseLeaves, add_columns
from pymc_trees.terms.leaves import (
    ForestLeaves,
    Slot,
    affordable_leaves,
    choose_trees,
    kind_of,
    products,
    steps_between,
    sweep_cost,
)
from pymc_trees.terms.rows import GaussianRows

MOST_PRECISE = 1e11
"""Precision of the rows of a leaf over that of its prior: the draw loses as many digits of 16."""


class Vector(NamedTuple):
    """A Gaussian vector among those that are drawn."""

    name: str
    """Of its value variable."""
    place: slice
    """Its entries among the values of all vectors."""
    natural: slice
    """Its entries among those of all variables, as the rows see them."""
    basis: np.ndarray | None
    """The variable as a function of the value, where that is not the variable itself."""


class OwnState:
    """State of a forest that no step shares: decoded after each sweep."""

    def __init__(self):
        self.forest: Any = None  # of the kind of the forest

    def __getstate__(self):
        """State without the arrays of a chain, which the next point rebuilds."""
        return {"forest": None}


class SharedState:
    """State of a forest as the step that sweeps it has it, so that it is never decoded here.

    Parameters
    ----------
    step : SweepStep
    place : int
        Of the forest among those of the step.
    """

    def __init__(self, step, place: int):
        self.step, self.place = step, place

    @property
    def forest(self) -> Any:
        """The step's own; None after an error."""
        return self.step.states[self.place].forest

    @forest.setter
    def forest(self, state):
        self.step.states[self.place] = self.step.states[self.place]._replace(forest=state)


class Integrated(NamedTuple):
    """The rows as a function of the vectors, and the leaves that were integrated out."""

    marginal: Marginal
    leaves: list[ForestLeaves | DenseLeaves]


class JointDraw:
    """Forests, vectors and hyperparameters of one likelihood.

    Parameters
    ----------
    model : pymc.Model
    rows : GaussianRows
    chosen : set of str
        Names of the vectors and hyperparameters that are drawn; others stay as they are.
    most_leaves : int, optional
        Leaf values drawn at once. Default: as many as cost about a quarter of a sweep.
    """

    def __init__(self, model, rows: GaussianRows, chosen: set[str], most_leaves: int | None):
        self.observed, self.likelihood = rows.observed.name, rows.likelihood
        self.of_logs, self.most_leaves = rows.of_logs, most_leaves
        self.n = rows.forests[0].owner.op.layout.n_rows
        self.forests = [
            (SoftForestData if is_soft_forest(forest) else forest_data)(model, forest)
            for forest in rows.forests
        ]
        self.vectors: list[Vector] = []
        self.fixed: list[Vector] = []
        place = natural = 0
        for rv, stand, basis in zip(rows.vectors, rows.natural, rows.bases, strict=True):
            size = int(np.prod(stand.type.shape))
            width = size if basis is None else basis.shape[1]
            drawn = rv.name in chosen
            one = Vector(
                model.rvs_to_values[rv].name,
                slice(place, place + width) if drawn else slice(0, 0),
                slice(natural, natural + size),
                basis,
            )
            (self.vectors if drawn else self.fixed).append(one)
            place, natural = place + width * drawn, natural + size
        self.n_values, self.n_natural = place, natural
        self._compile(model, rows, chosen)
        n_trees = [one.layout.m for one in self.forests]
        soft = sum(one.layout.m for one in self.forests if isinstance(one, SoftForestData))
        self.is_dense = any(issubclass(kind_of(one), DenseLeaves) for one in self.forests)
        self.sweep = sweep_cost(self.n, sum(n_trees) - soft, soft)
        self.every = steps_between(self.n, sum(n_trees), self.sweep, place, len(self.hypers))
        """Steps for each draw."""
        self._static: tuple | None = None
        self._layout_of_columns: tuple | None = None
        self.states: list[OwnState | SharedState] = [OwnState() for _ in self.forests]

    def _compile(self, model, rows: GaussianRows, chosen):
        """Functions of a point: numbers of the rows, priors, and densities of hyperparameters."""
        maps, offset = rows.affine.maps, rows.affine.offset
        members = [*rows.outputs, *rows.natural]
        drawn = [k for k, rv in enumerate(rows.vectors) if rv.name in chosen]
        factors = [maps[v].folded for v in rows.outputs]
        factors += [
            maps[v].factor if k in drawn else maps[v].folded for k, v in enumerate(rows.natural)
        ]
        changing = model.value_vars
        self._varies = [any(depends_on([e], v, set()) for v in changing) for e in factors]
        dynamic = [e for e, varies in zip(factors, self._varies, strict=True) if varies]
        static = [e for e, varies in zip(factors, self._varies, strict=True) if not varies]
        offset = pt.constant(0.0) if offset is None else offset
        self._n_wanted = len(rows.wanted)
        self._numbers, self._names = compile_values(model, [*rows.wanted, offset, *dynamic], [])
        # data: evaluated once a chain
        indices = [maps[v].index for v in members]
        start = model.initial_point()
        shapes = {v: pt.zeros(start[v.name].shape, dtype=v.dtype) for v in changing}
        data = clone_replace([*indices, *static], shapes, rebuild_strict=False)
        self._data, _ = compile_values(model, data, [])

        def prior_of(k):
            prior, scale = rows.priors[k], maps[rows.natural[k]].scale
            scale = pt.constant(1.0) if scale is None else scale
            flat = pt.broadcast_to(scale.reshape((-1,)), (prior.mean.size,))
            return [prior.mean, prior.precision, prior.log_norm, flat]

        priors = {k: prior_of(k) for k in drawn}
        self._priors, self._prior_needs = compiled_at(
            model, [], [e for parts in priors.values() for e in parts]
        )
        self.hypers: dict[str, list[int]] = {}
        """Names of the values of scalar variables, and the vectors that depend on each."""
        self._densities = {}
        for rv, where in rows.hypers.items():
            if rv.name in chosen and all(k in drawn for k in where):
                name = model.rvs_to_values[rv].name
                wanted = [e for k in where for e in priors[k]]
                self.hypers[name] = [drawn.index(k) for k in where]
                log_prior = model.logp(vars=[rv], sum=True)
                self._densities[name] = compiled_at(model, [], [log_prior, *wanted])

    def share(self, step) -> None:
        """Use the states that a sweep has of forests, instead of decoding their values."""
        for place, theirs in enumerate(step.forests):
            for k, ours in enumerate(self.forests):
                if ours.value_name == theirs.value_name:
                    self.forests[k], self.states[k] = theirs, SharedState(step, place)

    def check_inputs(self) -> None:
        """Raise an error if the model's data were replaced; forget the chain before."""
        self._static = self._layout_of_columns = None
        for forest in self.forests:
            forest.check_inputs()

    # ------------------------------------------------------------------------- Numbers at a point

    def _rows_at(self, point):
        """Observed and parameters, offset, and index and factor of each forest and vector."""
        n = self.n
        indices, static = self._data_of_rows()
        numbers = self._numbers(*(point[name] for name in self._names))
        wanted, offset = numbers[: self._n_wanted], numbers[self._n_wanted]
        dynamic, rest = iter(numbers[self._n_wanted + 1 :]), iter(static)
        factors = [_of_rows(next(dynamic), n) if one else next(rest) for one in self._varies]
        offset = np.broadcast_to(np.asarray(offset, dtype=np.float64), (n,))
        return wanted, offset, list(zip(indices, factors, strict=True))

    def _data_of_rows(self):
        if self._static is None:
            arrays, k = self._data(), len(self._varies)
            indices = [np.ascontiguousarray(_of_rows(v, self.n), np.int64) for v in arrays[:k]]
            self._static = indices, [_of_rows(v, self.n) for v in arrays[k:]]
        return self._static

    def _priors_at(self, point) -> list[Vectors]:
        numbers = self._priors(*numbers_at(point, self._prior_needs))
        return [_as_vectors(numbers[4 * k : 4 * k + 4]) for k in range(len(self.vectors))]

    def _value(self, point):
        """Values of the vectors that are drawn, one after the other."""
        return np.concatenate(
            [np.asarray(point[one.name], dtype=np.float64).reshape(-1) for one in self.vectors]
        )

    def _natural(self, point, scale):
        """All vectors as the rows see them."""
        natural = np.empty(self.n_natural)
        scaled = scale * self._value(point)
        for one in self.vectors:
            part = scaled[one.place]
            natural[one.natural] = part if one.basis is None else one.basis @ part
        for one in self.fixed:
            part = np.asarray(point[one.name], dtype=np.float64).reshape(-1)
            natural[one.natural] = part if one.basis is None else one.basis @ part
        return natural

    def _pseudo_rows(self, rng, wanted, eta):
        """Observations of the mean, and the precision of each or of all."""
        observed, *rest = wanted
        likelihood = self.likelihood
        if likelihood is None:
            [sd] = rest
            check_mean_and_sd([eta], sd)
            y = rows_of(observed, self.n)
            y = logs_of(y) if self.of_logs else y
            return y, np.asarray(sd, dtype=np.float64).reshape(-1) ** -2.0
        one, zero = np.ones(self.n), np.zeros(self.n)
        numbers = latent_numbers(likelihood, observed, rest, eta)
        latent = latent_rows(likelihood.augmentation, numbers, one, zero, eta.copy())
        w = latent_precisions(likelihood, numbers, one)
        leaf = make_normal(0.0, 1.0, zero.copy(), w, 1, latent)
        redraw_latents(leaf, rng)
        return latent.target, leaf.w

    # ----------------------------------------------------------------------- Sums and the marginal

    def integrate(self, rng, point) -> Integrated | None:
        """The rows at a point as a function of the vectors, leaf values integrated out.

        None where rows are so precise that rounding would decide the draw (`MOST_PRECISE`). This
        depends on the trees and the noise alone, which the draw does not change.
        """
        wanted, offset, members = self._rows_at(point)
        of_forests, of_vectors = members[: len(self.forests)], members[len(self.forests) :]
        settings = [forest.target.at(point)[0] for forest in self.forests]
        states = [
            forest.load(held.forest, point[forest.value_name], setting, point)
            for forest, held, setting in zip(self.forests, self.states, settings, strict=True)
        ]
        self._hold([None] * len(states))  # an error leaves none
        eta = offset.copy()
        for one, (index, factor) in zip(states, of_forests, strict=True):
            eta += (one.fit.reshape(-1)[index] * factor).sum(axis=1)
        scale = np.concatenate([one.scale for one in self._priors_at(point)])
        index, factor, slots = self._columns(of_vectors)
        natural = self._natural(point, scale)
        eta += (natural[index] * factor).sum(axis=1)
        y, w = self._pseudo_rows(rng, wanted, eta)
        for vector in self.vectors:
            natural[vector.natural] = 0.0
        rest = y - offset - (natural[index] * factor).sum(axis=1)
        by_bits = w.size == 1 and not self.is_dense
        most = self.most_leaves or affordable_leaves(self.n, self.sweep, by_bits)
        trees = choose_trees(rng, self.forests, states, most)
        leaves: list[ForestLeaves | DenseLeaves] = []
        for forest, one, setting, (index_f, by), chosen in zip(
            self.forests, states, settings, of_forests, trees, strict=True
        ):
            start = sum(part.n_values for part in leaves)
            part = kind_of(forest)(forest, one, setting, index_f, by, chosen, start)
            rest = rest - part.fixed_outputs()
            leaves.append(part)
        gram, cross, rhs = products(leaves, w, self.n_natural, slots, rest)
        columns, columns_rhs = np.zeros((self.n_natural,) * 2), np.zeros(self.n_natural)
        add_columns(w, index, factor, rest, columns, columns_rhs)
        A = self._basis()
        if A is not None:
            cross, columns, columns_rhs = cross @ A, A.T @ columns @ A, A.T @ columns_rhs
        mean = np.concatenate([part.mean for part in leaves])
        sd = np.concatenate([part.sd for part in leaves])
        if gram.diagonal().max() * sd.max() ** 2 > MOST_PRECISE:
            self._hold(states)
            return None
        return Integrated(
            integrate_leaves(gram, cross, rhs, mean, sd, columns, columns_rhs), leaves
        )

    def _columns(self, members):
        """Index and factor of the entries of all vectors, for each row, and each as a slot."""
        k = len(self.forests)
        if self._layout_of_columns is not None and not any(self._varies[k:]):
            return self._layout_of_columns
        order = sorted((*self.vectors, *self.fixed), key=lambda one: one.natural.start)
        starts = [one.natural.start for one in order]
        parts = [index + start for (index, _), start in zip(members, starts, strict=True)]
        index = np.concatenate(parts, axis=1)
        factor = np.concatenate([factor for _, factor in members], axis=1)
        slots = [Slot(index[:, j], factor[:, j]) for j in range(index.shape[1])]
        self._layout_of_columns = index, factor, slots
        return self._layout_of_columns

    def _basis(self):
        """All that the rows see as a function of the values that are drawn; None where equal."""
        if not self.fixed and all(one.basis is None for one in self.vectors):
            return None
        A = np.zeros((self.n_natural, self.n_values))
        for one in self.vectors:
            width = one.natural.stop - one.natural.start
            A[one.natural, one.place] = np.eye(width) if one.basis is None else one.basis
        return A

    # -------------------------------------------------------------- Hyperparameters, and the draw

    def evidence(self, name: str, point: dict, integrated: Integrated):
        """Log-density of a hyperparameter, leaf values and vectors integrated out."""
        function, needs = self._densities[name]
        where = self.hypers[name]
        others = np.ones(self.n_values, dtype=bool)
        for k in where:
            others[self.vectors[k].place] = False
        rest = [p for k, p in enumerate(self._priors_at(point)) if k not in where]
        M, r = integrated.marginal.M, integrated.marginal.r
        if rest:  # vectors that do not depend on it are integrated out once
            M, r = without(M, r, others, joined(rest))
        evidence, at = Evidence(M, r), dict(point)

        def log_density(value: float) -> float:
            at[name] = np.array(value)
            log_prior, *numbers = function(*numbers_at(at, needs))
            if not np.isfinite(log_prior):
                return -np.inf
            priors = [_as_vectors(numbers[4 * k : 4 * k + 4]) for k in range(len(where))]
            return float(log_prior) + evidence(joined(priors))

        return log_density

    def draw(self, rng, point: dict, integrated: Integrated) -> dict:
        """New vectors and leaf values at a point, whose hyperparameters may be new."""
        prior = joined(self._priors_at(point))
        v = draw_vectors(rng, integrated.marginal, prior)
        point = dict(point)
        for one in self.vectors:
            point[one.name] = v[one.place].reshape(np.shape(point[one.name]))
        u = draw_leaves(rng, integrated.marginal, prior.scale * v)
        states = [part.store(u) for part in integrated.leaves]
        for forest, state in zip(self.forests, states, strict=True):
            point[forest.value_name] = state.value
        self._hold(states)
        return point

    def _hold(self, states) -> None:
        for held, state in zip(self.states, states, strict=True):
            held.forest = state

    def __getstate__(self):
        """State without the arrays of a chain."""
        return self.__dict__ | {"_static": None, "_layout_of_columns": None}


def _of_rows(array, n):
    """(n, r) numbers, where the array may have one row for all."""
    array = np.asarray(array)
    return np.ascontiguousarray(np.broadcast_to(array, (n, array.shape[-1])))


def _as_vectors(numbers) -> Vectors:
    mean, precision, log_norm, scale = (np.asarray(v, dtype=np.float64) for v in numbers)
    return Vectors(mean, precision, float(log_norm), scale)
