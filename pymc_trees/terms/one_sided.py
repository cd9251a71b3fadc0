"""Errors on one side of Normal rows, ``y_i = m_i + c u_i + v_i`` and u_i >= 0: frontiers.

=========== ====================================================================================
e_i         y_i - m_i; what is left of the row without u
sigma       sd of v_i, a Normal
s           scale of u_i: a half-normal (Aigner, Lovell and Schmidt 1977), or an exponential of
            mean s (Meeusen and van den Broeck 1977)
w           root of sigma^2 + c^2 s^2
=========== ====================================================================================

Given e_i, u_i is a Normal(M_i, S) above 0, and integrates out:

    half-normal  M = c s^2 e / w^2,               S = sigma s / w,
                 log p(e) = log 2 + log N(e; 0, w^2) + log Phi(M / S)
    exponential  M = e / c - sigma^2 / (c^2 s),   S = sigma / |c|,
                 log p(e) = log Phi(M / S) - log(s |c|) - e / (c s) + sigma^2 / (2 c^2 s^2)

The rows know the variance of the whole error, sigma^2 + k c^2 s^2, and their mean, m + c E u. What
they hardly know is how both divide. So each step draws, with u integrated out, s and sigma in turn
and then the share of u in a variance that stays, while the forest rises by what c E u falls by; and
last u from its conditional. The maps are translations of the logs of both scales, of their logit
share and of the leaf values, in directions that do not depend on what moves, and so of Jacobian 1.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.transforms import LogTransform
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.scalar import basic as scalars
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.basic import ExponentialRV, HalfNormalRV, LogNormalRV, NormalRV
from scipy.special import erfcx, log_expit, log_ndtr

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.latent.augmentations import draw_truncated
from pymc_trees.core.samplers.slice_draw import slice_draw
from pymc_trees.distributions.ops.soft_forest_rv import is_soft_forest
from pymc_trees.distributions.tree_variable import tree_variables
from pymc_trees.targets.graph import (
    NotConjugateError,
    constant,
    depends_on,
    moves_rows,
    passes_through,
    read_graph,
)
from pymc_trees.targets.lift import Lift
from pymc_trees.targets.likelihoods.contract import rows_of, sole_term
from pymc_trees.targets.likelihoods.normal import check_mean_and_sd, logs_of
from pymc_trees.targets.referenced_state import forest_data
from pymc_trees.targets.ridges import may_rise
from pymc_trees.targets.settings import compile_values, compiled_at, numbers_at
from pymc_trees.targets.soft_forest_state import SoftForestData
from pymc_trees.terms.rows import (
    conflict,
    is_sum_of_trees,
    replaced_by,
    try_affine,
    without_shapes,
)

# --------------------------------------------------------------------------- Normal numbers above 0


@njit(cache=True)
def draw_above_zero(rng, mean, sd, out):
    """Write draws from Normals between 0 and infinity."""
    for i in range(out.size):
        low = -mean[i] / sd[i]
        out[i] = mean[i] + sd[i] * draw_truncated(rng, low, np.inf)
        if not out[i] > 0.0:  # rounding has lost it: in such a tail the law is exponential
            out[i] = sd[i] * rng.standard_exponential() / max(low, 1.0)


# -------------------------------------------------------------------------------------------------


ROUNDS = 2
"""Draws of the scales in a step."""
SHARE_WIDTH = 2.0
"""Width of the interval of the slice sampler for the logit share."""


class HalfNormal:
    """u = s |z|, z standard normal."""

    mean, variance = np.sqrt(2.0 / np.pi), 1.0 - 2.0 / np.pi
    """Of u, for s = 1."""

    @staticmethod
    def conditional(e, sigma, s, c):
        """M and S of each row."""
        w = np.hypot(sigma, c * s)
        return c * s**2 * e / w**2, sigma * s / w

    @staticmethod
    def log_density(e, sigma, s, c) -> float:
        """Of all rows."""
        w = np.hypot(sigma, c * s)
        tail = log_ndtr(c * s * e / (sigma * w))
        return float(np.sum(tail - np.log(w) - 0.5 * (e / w) ** 2)) + e.size * _HALF

    @staticmethod
    def scale(rv) -> Variable | None:
        """The scale of a random variable, if it is one of this law."""
        loc, sigma = rv.owner.op.dist_params(rv.owner)
        return sigma if constant(loc) == 0.0 else None


_HALF = np.log(2.0) - 0.5 * np.log(2.0 * np.pi)


class Exponential:
    """u = s times a standard exponential."""

    mean = variance = 1.0

    @staticmethod
    def conditional(e, sigma, s, c):
        """M and S of each row."""
        return e / c - sigma**2 / (c**2 * s), sigma / abs(c)

    @staticmethod
    def log_density(e, sigma, s, c) -> float:
        """Of all rows."""
        a = np.sign(c) * e / sigma
        x = a - sigma / (abs(c) * s)  # M / S; log p(e) = log Phi(x) + (x^2 - a^2) / 2 - log(s |c|)
        below = np.log(0.5 * erfcx(-np.minimum(x, 0.0) / np.sqrt(2.0)))  # without its cancellation
        scaled = np.where(x < 0.0, below, log_ndtr(x) + 0.5 * x**2)
        return float(np.sum(scaled - 0.5 * a**2 - np.log(s * abs(c))))

    @staticmethod
    def scale(rv) -> Variable | None:
        """The scale of a random variable, if it is one of this law."""
        [mean] = rv.owner.op.dist_params(rv.owner)
        return mean


LAWS: dict[type, Any] = {HalfNormalRV: HalfNormal, ExponentialRV: Exponential}


# ----------------------------------------------------------------------------- Reading of a model


class OneSided(NamedTuple):
    """An observed variable with errors on one side."""

    u: Variable
    law: Any
    scale: Variable
    """s, an expression of values."""
    scale_rv: Variable | None
    """A free variable that is s, or 1 / s, and nothing else; if there is one."""
    power: int
    """s is this variable to the power, 1 or -1."""
    noise_rv: Variable | None
    """A free variable that is sigma, and nothing else; if there is one."""
    observed: Variable
    wanted: list[Variable]
    """Observed value, sigma and m without the forest."""
    of_logs: bool
    forest: Variable
    of_forest: tuple[Variable, Variable]
    """Index and factor of its outputs in m."""
    c: "Factor"

    @property
    def variables(self) -> list[Variable]:
        """What is drawn."""
        return [v for v in (self.u, self.scale_rv, self.noise_rv) if v is not None]


def read_one_sided(model: pm.Model) -> list[OneSided]:
    """Errors on one side of Normal rows around forests, in a model without named dimensions."""
    found = [_read(model, rv) for rv in model.free_RVs if type(rv.owner.op) in LAWS]
    return [one for one in found if one is not None]


def _read(model, u) -> OneSided | None:
    if u.ndim != 1 or not _is_positive(model, u) or moves_rows(model, u):
        return None
    observed = _sole_child(model, u)
    if observed is None or observed.ndim != 1 or observed not in model.observed_RVs:
        return None
    if not isinstance(observed.owner.op, NormalRV | LogNormalRV):
        return None
    forest = next((v for v in _forests(model) if _is_of(model, v, observed)), None)
    law = LAWS[type(u.owner.op)]
    scale = law.scale(u)
    if forest is None or scale is None:
        return None
    term = sole_term(read_graph(model, forest))
    assert term is not None
    (mean, sd), outputs = term.opened()
    shape = model.eval_rv_shapes()[u.name]
    natural = pt.TensorType("float64", shape=shape)(f"natural_{u.name}")
    inside = replaced_by(model, u, natural, [mean, sd])
    if inside is None or depends_on([inside[1]], natural, set()):
        return None
    members, values = [outputs, natural], model.value_vars
    affine = try_affine(inside[0], members, {*values, *members})
    if affine is None or not all(v in affine.maps for v in members):
        return None
    if conflict(affine, members, values) or depends_on([inside[1]], outputs, set()):
        return None
    affine = without_shapes(affine, members)
    of_forest, of_u = (affine.maps[v] for v in members)
    if any(depends_on([of_u.folded], v, set()) for v in values):
        return None
    c = Factor(model, u, of_u)
    if c.now() is None:
        return None
    scale_rv, power = _own_variable(model, scale, u)
    offset = pt.constant(0.0) if affine.offset is None else affine.offset
    return OneSided(
        u,
        law,
        model.replace_rvs_by_values([scale])[0],
        scale_rv,
        power,
        _noise_variable(model, observed),
        observed,
        [term.value, inside[1], offset],
        isinstance(observed.owner.op, LogNormalRV),
        forest,
        (of_forest.index, of_forest.folded),
        c,
    )


class Factor:
    """The number c, where row i has entry i of u, and all rows the same factor."""

    def __init__(self, model: pm.Model, u: Variable, of_u):
        self.u_name, self.n = u.name, model.eval_rv_shapes()[u.name][0]
        start = model.initial_point()
        zeros = {v: pt.zeros(start[v.name].shape, dtype=v.dtype) for v in model.value_vars}
        expressions = clone_replace([of_u.index, of_u.folded], zeros, rebuild_strict=False)
        self._numbers, _ = compile_values(model, expressions, [])

    def now(self) -> float | None:
        """It, given the present data; None where these are otherwise."""
        index, factor = (np.asarray(v, dtype=float).reshape(-1) for v in self._numbers())
        if not np.array_equal(index, np.arange(self.n)):
            return None
        c = float(factor[0])
        return c if np.isfinite(c) and c != 0 and (factor == c).all() else None

    def checked(self) -> float:
        """It, or an error."""
        if (c := self.now()) is None:
            raise ValueError(
                f"{self.u_name} no longer has the same factor, not 0, at all rows: set the data "
                "back with pm.set_data, or let pm.sample() assign a step."
            )
        return c


def _forests(model):
    return [tree.rv for tree in tree_variables(model) if is_sum_of_trees(tree.rv)]


def _is_of(model, forest, observed) -> bool:
    """Whether the observed variable is all that depends on a forest."""
    try:
        term = sole_term(read_graph(model, forest))
    except NotConjugateError:
        return False
    return term is not None and term.rv is observed


def _sole_child(model, rv) -> Variable | None:
    """The only variable that depends on another."""
    graph = read_graph(model, rv)
    return graph.terms[0] if len(graph.terms) == 1 and not graph.potentials else None


def _is_positive(model, rv) -> bool:
    """Whether PyMC samples the log of a free variable of real numbers."""
    is_free = any(rv is v for v in model.free_RVs)
    return is_free and isinstance(model.rvs_to_transforms.get(rv), LogTransform)


def _own_variable(model, expression, child) -> tuple[Variable | None, int]:
    """The scalar variable that an expression is, or is 1 over, if it enters one other alone.

    Returns
    -------
    variable : Variable or None
    power : int
        1 or -1.
    """
    power, v = 1, expression
    while v.owner is not None and v not in model.basic_RVs:
        op = v.owner.op
        if isinstance(op, Elemwise) and isinstance(op.scalar_op, scalars.Reciprocal):
            power = -power
        elif not isinstance(op, DimShuffle) and passes_through(v) is None:
            return None, 1
        v = v.owner.inputs[0]
    if v.ndim or not _is_positive(model, v) or _sole_child(model, v) is not child:
        return None, 1
    return v, power


def _noise_variable(model, observed) -> Variable | None:
    """The scalar variable that is sigma, if it enters nothing else."""
    mean, sd = observed.owner.op.dist_params(observed.owner)
    v, power = _own_variable(model, sd, observed)
    if v is None or power < 0 or v in ancestors([mean], blockers=model.basic_RVs):
        return None
    return v


# ------------------------------------------------------------------------------------ The draw


class Rows(NamedTuple):
    """The rows at a point, and the density of both scales with u integrated out."""

    e: np.ndarray
    sigma: np.ndarray
    s: np.ndarray
    """(n,) or (1,), as sigma is."""
    c: float
    lift: Lift | None
    """The forest as a function of what its level rises by."""
    by: float
    """What m rises by with it."""


class OneSidedDraw:
    """Scales, the level of the forest and u, drawn together.

    Parameters
    ----------
    model : pymc.Model
        Without named dimensions.
    one : OneSided
    chosen : set of str
        Names of variables that are drawn; u is among them.
    """

    def __init__(self, model: pm.Model, one: OneSided, chosen: set[str]):
        self.law, self.power, self.of_logs, self._factor = one.law, one.power, one.of_logs, one.c
        self.c = one.c.checked()
        kind = SoftForestData if is_soft_forest(one.forest) else forest_data
        self.forests: list[Any] = [kind(model, one.forest)]
        self.leaf = one.forest.owner.op.leaf_type.name
        self.rises = may_rise(one.forest) and self.forests[0].layout.n_outputs == 1
        self.states: list = []
        """Of the forest: one, as the joint draw of Gaussian terms has it."""
        self.u_name = model.rvs_to_values[one.u].name

        def name_of(rv):
            return model.rvs_to_values[rv].name if rv is not None and rv.name in chosen else None

        self.scale_name, self.noise_name = name_of(one.scale_rv), name_of(one.noise_rv)
        expressions = [*one.wanted, one.scale, *one.of_forest]
        self._numbers, self._names = compile_values(model, expressions, [])
        moved = [rv for rv in (one.scale_rv, one.noise_rv) if name_of(rv)]
        if moved:
            self._prior, self._prior_needs = compiled_at(
                model, [], model.logp(vars=moved, sum=True)
            )

    @property
    def numbers(self) -> list[str]:
        """Names of the values of the scales that are drawn."""
        return [name for name in (self.scale_name, self.noise_name) if name is not None]

    def check_inputs(self) -> None:
        """Read new data of the factor, or raise an error; one for new rows of the forest."""
        self.forests[0].check_inputs()
        self.c = self._factor.checked()

    def draw(self, rng, point: dict, widths: dict[str, float]) -> tuple[dict, int]:
        """A point with new values, and the evaluations of the density of the scales."""
        [forest], [held] = self.forests, self.states
        settings = forest.target.at(point)[0]
        state = forest.load(held.forest, point[forest.value_name], settings, point)
        held.forest = None  # an error leaves none
        rows = self._rows(point, state, settings)
        moves = _Moves(self, rows, point)
        for _ in range(ROUNDS):
            for name in self.numbers:
                moves.one(rng, name, widths[name])
            if self.scale_name and self.noise_name:
                moves.share(rng)
        if moves.level != 0.0:
            assert rows.lift is not None
            rows.lift.rise(moves.level / rows.by)
            state = forest.store(state, settings)
        held.forest = state
        sigma, s = moves.scales(moves.now)
        mean, sd = self.law.conditional(rows.e - moves.level, sigma, s, self.c)
        n = rows.e.size
        mean, sd = np.broadcast_to(mean, (n,)), np.broadcast_to(np.asarray(sd, float), (n,))
        u = np.empty(n)
        draw_above_zero(rng, np.ascontiguousarray(mean), np.ascontiguousarray(sd), u)
        drawn = {name: np.array(value) for name, value in moves.now.items()}
        drawn |= {self.u_name: np.log(u), forest.value_name: state.value}
        return point | drawn, moves.evaluations

    def _rows(self, point, state, settings) -> Rows:
        observed, sd, offset, scale, index, factor = self._numbers(
            *(point[name] for name in self._names)
        )
        fit = state.fit.reshape(-1)
        n = fit.size
        y = rows_of(observed, n)
        y = logs_of(y) if self.of_logs else y
        m = offset + (fit[index] * factor).sum(axis=-1)
        check_mean_and_sd([m], sd)
        sigma = np.asarray(sd, dtype=np.float64).reshape(-1)
        level = np.asarray(factor, dtype=np.float64).reshape(-1)
        lift = None
        if self.rises and level[0] != 0 and (level == level[0]).all():
            lift = Lift.of(state.trees, settings, self.leaf, 0)
        s = np.asarray(scale, dtype=np.float64).reshape(-1)
        return Rows(y - m, sigma, s, self.c, lift, float(level[0]))

    def prior(self, point: dict) -> float:
        """Log density of the scales at a point, up to a constant."""
        return float(self._prior(*numbers_at(point, self._prior_needs)))


class _Moves:
    """What has moved so far in a step."""

    def __init__(self, draw: OneSidedDraw, rows: Rows, point: dict):
        self.draw, self.rows, self.point = draw, rows, point
        self.now = {name: float(point[name]) for name in draw.numbers}
        self.level, self.evaluations = 0.0, 0

    def scales(self, values: dict[str, float]):
        """Sigma and s."""
        draw, rows = self.draw, self.rows
        sigma = np.exp(values[draw.noise_name]) if draw.noise_name in values else rows.sigma
        s = np.exp(draw.power * values[draw.scale_name]) if draw.scale_name in values else rows.s
        return sigma, s

    def along(self, rng, path: Callable[[float], dict], start: float, width: float) -> None:
        """Move the scales along a path, and the forest by what c E u loses."""
        rows, law, lift = self.rows, self.draw.law, self.rows.lift
        _, before = self.scales(self.now)

        def at(t: float) -> tuple[dict, float]:
            values = self.now | path(t)
            if lift is None or self.draw.scale_name is None:
                return values, 0.0
            return values, self.level - rows.c * law.mean * (self.scales(values)[1] - before)

        def log_density(t: float) -> float:
            values, level = at(t)
            found = self.draw.prior(self.point | {k: np.array(v) for k, v in values.items()})
            if not np.isfinite(found):
                return -np.inf
            if lift is not None:
                found += lift.log_density(level / rows.by)
            sigma, s = self.scales(values)
            return found + law.log_density(rows.e - level, sigma, s, rows.c)

        t, count = slice_draw(rng, log_density, start, width)
        self.evaluations += count
        if np.isnan(t):
            raise ValueError(
                f"At this point the density of {' and '.join(self.now)} is 0 or not finite: give "
                "an initial value (initvals) inside its prior."
            )
        self.now, self.level = at(t)

    def one(self, rng, name: str, width: float) -> None:
        """Move one of the scales."""
        self.along(rng, lambda value: {name: value}, self.now[name], width)

    def share(self, rng) -> None:
        """Move the share of u in the variance of a row's error, which stays as it is."""
        draw = self.draw
        sigma, s = self.scales(self.now)
        of_u = draw.law.variance * draw.c**2
        total = np.log(sigma**2 + of_u * s**2)

        def path(logit: float) -> dict:
            log_s = 0.5 * (total + log_expit(logit) - np.log(of_u))
            log_sigma = 0.5 * (total + log_expit(-logit))
            return {draw.scale_name: draw.power * log_s, draw.noise_name: log_sigma}

        start = np.log(of_u) + 2.0 * (np.log(s) - np.log(sigma))
        self.along(rng, path, float(start), SHARE_WIDTH)
