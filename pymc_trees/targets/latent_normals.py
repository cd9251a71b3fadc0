"""Entries of MvNormal rows around forests that are variables of the model: their rows and limits.

Such a variable is a free `pymc.MvNormal`, or what is missing of an observed one. It qualifies if
all that depends on it says of single entries between which limits they lie: a Bernoulli whose p is
1 on one side of a limit and 0 on the other, or a Potential that is 0 between limits and -inf
elsewhere. Given the other entries of its row each entry is then a truncated normal.
"""

from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.distribution import PartialObservedRV
from pymc.distributions.multivariate import MvNormal
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, explicit_graph_inputs
from pytensor.scalar import basic as scalars
from pytensor.tensor.elemwise import CAReduce, Elemwise
from pytensor.tensor.math import All
from pytensor.tensor.random.basic import BernoulliRV

from pymc_trees.distributions.tree_variable import tree_variables
from pymc_trees.targets.affine import LinearMap, read_affine_map
from pymc_trees.targets.graph import (
    NotRecognisedError,
    constant,
    parameters_of,
    read_graph,
    stripped,
)
from pymc_trees.targets.settings import compile_values

ABOVE, BELOW = (scalars.GT, scalars.GE), (scalars.LT, scalars.LE)


class Limit(NamedTuple):
    """Conditions ``factor v[index] + offset > 0`` on entries of a variable v, or < 0."""

    index: Variable
    factor: Variable
    offset: Variable
    is_positive: Variable
    """Which of the two, for each condition."""


class LatentNormal(NamedTuple):
    """A variable that is all or some of the entries of MvNormal rows, as expressions of values."""

    rows: Variable
    """(n, K), whatever is observed of them."""
    is_latent: Variable
    """(n, K) bool: where the entries of the variable are, in their order."""
    mean: Variable
    cov: Variable
    limits: list[Limit]


def read_latent_normal(model: pm.Model, rv: Variable) -> LatentNormal | None:
    """How a variable of a model is latent normal entries; None if it is not known to be.

    Parameters
    ----------
    model : pymc.Model
        Without named dimensions.
    """
    if not isinstance(rv, Variable) or not any(rv is free for free in model.free_RVs):
        return None
    found = _rows(model, rv)
    if found is None or model.rvs_to_transforms.get(rv) is not None:
        return None
    law, rows, is_latent = found
    trees = [tree.rv for tree in tree_variables(model)]
    if not any(v in trees for v in ancestors(law.owner.inputs, blockers=model.basic_RVs)):
        return None
    graph = read_graph(model, rv)
    try:
        limits = [one for term in graph.terms for one in _of_bernoulli(model, rv, term)]
        limits += [one for term in graph.potentials for one in _of_potential(model, rv, term)]
    except NotRecognisedError:
        return None
    mean, cov = model.replace_rvs_by_values(parameters_of(law))
    return LatentNormal(rows, is_latent, mean, cov, limits)


def _rows(model, rv) -> tuple[Variable, Variable, Variable] | None:
    """The MvNormal, its rows, and which of their entries are the variable."""
    op, value, kind = rv.owner.op, model.rvs_to_values[rv], type(MvNormal.rv_op)
    if isinstance(op, kind) and rv.ndim == 2:
        return rv, value, pt.ones_like(value, dtype="bool")
    if not isinstance(op, PartialObservedRV):
        return None
    law, mask = rv.owner.inputs
    seen, missing = rv.owner.outputs
    if not (isinstance(law.owner.op, kind) and law.ndim == 2) or rv is not missing:
        return None
    if seen not in model.observed_RVs or mask.ndim != 2:
        return None
    rows = pt.zeros(mask.shape)[mask].set(value)[~mask].set(model.rvs_to_values[seen])
    return law, rows, mask


# ------------------------------------------------------------------------------- Limits of entries


def _of_bernoulli(model, rv, term) -> list[Limit]:
    """Which side of a limit each observation of 0 or 1 says an entry is on."""
    if term not in model.observed_RVs or not isinstance(term.owner.op, BernoulliRV):
        raise NotRecognisedError(f"{term.name} is not an observed pm.Bernoulli")
    p = parameters_of(term)[0]
    op = (p := _bare(p)).owner.op if p.owner else None
    when, swapped = p, False
    if isinstance(op, Elemwise) and isinstance(op.scalar_op, scalars.Switch):
        when, *ends = p.owner.inputs
        ends = [constant(v) for v in ends]
        if ends not in ([1.0, 0.0], [0.0, 1.0]):
            raise NotRecognisedError("a probability between 0 and 1")
        swapped = ends[0] == 0.0
    holds = pt.neq(model.rvs_to_values[term], 0)
    return [_comparison(model, rv, _bare(when), ~holds if swapped else holds)]


def _of_potential(model, rv, term) -> list[Limit]:
    """A Potential that is 0 where all of some comparisons hold, and -inf elsewhere."""
    term = _bare(term)
    while term.owner and isinstance(term.owner.op, CAReduce):
        if not isinstance(term.owner.op.scalar_op, scalars.Add):
            break
        term = _bare(term.owner.inputs[0])
    op = term.owner.op if term.owner else None
    if not (isinstance(op, Elemwise) and isinstance(op.scalar_op, scalars.Switch)):
        raise NotRecognisedError("a Potential that is no switch")
    when, *ends = term.owner.inputs
    if [constant(v) for v in ends] != [0.0, -np.inf]:
        raise NotRecognisedError("a Potential that is not 0 or -inf")
    return [_comparison(model, rv, one, pt.constant(True)) for one in _conjuncts(when)]


def _conjuncts(condition):
    """Conditions that together are equivalent to one condition."""
    condition = _bare(condition)
    op = condition.owner.op if condition.owner else None
    is_and = isinstance(op, Elemwise) and isinstance(op.scalar_op, scalars.AND)
    if isinstance(op, All) or is_and:
        for one in condition.owner.inputs:
            yield from _conjuncts(one)
    else:
        yield condition


def _comparison(model, rv, condition, holds) -> Limit:
    """A comparison of entries of a variable with something else, which holds or does not."""
    op = condition.owner.op if condition.owner else None
    kind = op.scalar_op if isinstance(op, Elemwise) else None
    if not isinstance(kind, ABOVE + BELOW):
        raise NotRecognisedError("a condition that is no comparison")
    left, right = condition.owner.inputs
    difference = left - right if isinstance(kind, ABOVE) else right - left
    [difference] = model.replace_rvs_by_values([difference.astype("float64")])
    value = model.rvs_to_values[rv]
    stand = pt.tensor("stand", dtype="float64", shape=_shape(rv))
    [difference] = clone_replace([difference], {value: stand}, rebuild_strict=False)
    changing = {v for v in explicit_graph_inputs([difference]) if v in model.value_vars}
    read = read_affine_map(difference, [stand], changing)
    if list(read.maps) != [stand]:
        raise NotRecognisedError("a condition that does not see the variable")
    one: LinearMap = read.maps[stand]
    if one.index.type.shape[-1] != 1:
        raise NotRecognisedError("a condition on several entries")
    offset = pt.zeros(difference.shape) if read.offset is None else read.offset
    parts = [one.index[..., 0], one.folded[..., 0], offset, holds]
    parts = clone_replace(pt.broadcast_arrays(*parts), {stand: value}, rebuild_strict=False)
    return Limit(*(part.ravel() for part in parts))


def _shape(rv) -> tuple[int, ...]:
    if None not in rv.type.shape:
        return rv.type.shape
    if isinstance(rv.owner.op, PartialObservedRV):
        _, mask = rv.owner.inputs
        return (int(mask.sum().eval()),)
    return tuple(int(length) for length in rv.shape.eval())


def _bare(var: Variable) -> Variable:
    """An expression without the Ops around it that repeat it or change its type alone."""
    while var.owner is not None:
        op = var.owner.op
        kind = op.scalar_op if isinstance(op, Elemwise) else None
        if isinstance(kind, scalars.Cast):
            var = var.owner.inputs[0]
        elif isinstance(kind, scalars.Second):
            _, inner = var.owner.inputs
            if inner.type.broadcastable != var.type.broadcastable:
                break
            var = inner
        elif (inner := stripped(var)) is not var:
            var = inner
        else:
            break
    return var


# ---------------------------------------------------------------------------- Numbers at a point


class Numbers(NamedTuple):
    """Rows with latent entries at a point, as `core.samplers.latent_normals` takes them.

    All are C-contiguous, whatever the layout of the mean: one compiled call serves all variables.
    """

    rows: np.ndarray
    mean: np.ndarray
    precision: np.ndarray
    is_latent: np.ndarray
    low: np.ndarray
    high: np.ndarray


class LatentEntries:
    """A variable of latent entries as a function of the values of a point.

    Parameters
    ----------
    model : pymc.Model
        Without named dimensions.
    rv : Variable
    latent : LatentNormal
        What `read_latent_normal` found.
    """

    def __init__(self, model: pm.Model, rv: Variable, latent: LatentNormal):
        self.name, self.value_name = rv.name, model.rvs_to_values[rv].name
        parts = [part for limit in latent.limits for part in limit]
        self._limits, self._names = compile_values(model, parts, [])
        wanted = [latent.rows, latent.is_latent, latent.mean, latent.cov]
        self._rows, self._names_of_rows = compile_values(model, wanted, [])

    def limits(self, point: dict) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper limits of the entries, in their order, or an error."""
        parts = self._limits(*(point[name] for name in self._names))
        size = np.size(point[self.value_name])
        low, high = np.full(size, -np.inf), np.full(size, np.inf)
        for k in range(0, len(parts), 4):
            sees = parts[k + 1] != 0  # the others are conditions on what is observed
            index, factor, offset, is_positive = (part[sees] for part in parts[k : k + 4])
            at, upward = -offset / factor, (factor > 0) == is_positive
            np.maximum.at(low, index[upward], at[upward])
            np.minimum.at(high, index[~upward], at[~upward])
        if not (low < high).all():
            raise ValueError(
                f"Entries of {self.name} have no room between their limits at this point: make "
                "lower limits smaller than upper ones."
            )
        return low, high

    def numbers(self, point: dict) -> Numbers:
        """All numbers at a point, or an error."""
        rows, is_latent, mean, cov = self._rows(*(point[name] for name in self._names_of_rows))
        k = rows.shape[1]
        cov = np.reshape(cov, (-1, k, k))
        cov = cov[:1] if (cov == cov[:1]).all() else cov
        try:
            roots = np.linalg.inv(np.linalg.cholesky(cov))
        except np.linalg.LinAlgError:
            roots = np.array(np.nan)
        if not (np.isfinite(roots).all() and np.isfinite(mean).all()):
            raise ValueError(
                f"The mean of {self.name} must be finite, and its covariance positive definite, "
                "but at this point they are not: give its standard deviations a prior that keeps "
                "them away from 0."
            )
        ends = []
        for end in self.limits(point):
            ends.append(np.zeros(rows.shape))
            ends[-1][is_latent] = end
        mean = np.array(np.broadcast_to(mean, rows.shape), dtype=np.float64, order="C")
        rows, precision = np.array(rows, order="C"), np.ascontiguousarray(roots.mT @ roots)
        return Numbers(rows, mean, precision, np.ascontiguousarray(is_latent), *ends)

    def inside(self, point: dict) -> np.ndarray:
        """The entries at a point, those moved that are beyond a limit."""
        low, high = self.limits(point)
        value = np.array(point[self.value_name], dtype=np.float64, order="C")
        middle = np.where(np.isinf(low), high - 1.0, np.where(np.isinf(high), low + 1.0, 0.0))
        both = np.isfinite(low) & np.isfinite(high)
        middle[both] = 0.5 * (low[both] + high[both])
        flat = value.reshape(-1)
        beyond = ~((flat > low) & (flat < high))
        flat[beyond] = middle[beyond]
        return value


def latent_entries(model: pm.Model) -> list[LatentEntries]:
    """Of all variables of a model without named dimensions that are such entries."""
    found = [(rv, read_latent_normal(model, rv)) for rv in model.free_RVs]
    return [LatentEntries(model, rv, one) for rv, one in found if one is not None]
