"""The sd of Normal rows around forests: which variables enter it alone, and their density.

Given everything else the rows depend on such variables s through ``-log sd_i - r_i^2 / (2 sd_i^2)``
alone, r being the residuals. Where ``sd_i = c_i h(s)[k_i]``, with c and k free of s, the rows are
summed once for all values of s: ``sum over k of -n_k log h_k - S_k / (2 h_k^2)``, S_k being the sum
of ``(r_i / c_i)^2`` over the n_k rows of entry k. Any other sd is evaluated row by row.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.distribution import SymbolicRandomVariable
from pytensor.graph.basic import Variable, equal_computations
from pytensor.graph.traversal import ancestors
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar import basic as scalars
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.basic import LogNormalRV, NormalRV
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_trees.distributions.tree_variable import tree_variables
from pymc_trees.targets.graph import cut_free, dependent_on, passes_through, read_graph
from pymc_trees.targets.settings import compiled_at, numbers_at

MOST = 50
"""Maximal size of such a variable: its entries are drawn one by one."""


class Noise(NamedTuple):
    """``observed ~ Normal(mean, sd)``, or a LogNormal: then that is the law of the logs."""

    observed: Variable
    """The observed variable."""
    mean: Variable
    sd: Variable
    of_logs: bool

    def residual(self, model: pm.Model) -> Variable:
        """What the observations differ from the mean by."""
        observed = model.rvs_to_values[self.observed]
        return (pt.log(observed) if self.of_logs else observed) - self.mean


def read_noise(model: pm.Model, rv: Variable) -> list[Noise]:
    """The observed variables whose sd a variable enters, if it enters nothing else.

    Returns
    -------
    list of Noise
        Empty unless the variable is a free one of at most `MOST` real numbers, and all that depends
        on it are observed Normals or LogNormals whose sd sees it and whose mean does not, one of
        them around a forest.
    """
    if not isinstance(rv, Variable) or not any(rv is free for free in model.free_RVs):
        return []
    if not rv.dtype == model.rvs_to_values[rv].dtype == "float64":
        return []
    variables = tree_variables(model)
    if not variables or any(tree.moves_with_all for tree in variables):
        return []
    trees, known = [tree.rv for tree in variables], set(model.basic_RVs)

    def sees_trees(expressions):
        return any(v in trees for v in ancestors(expressions, blockers=model.basic_RVs))

    if rv in trees or sees_trees(rv.owner.inputs):
        return []
    graph = read_graph(model, rv)
    if graph.potentials or not graph.terms:
        return []
    found = [_noise(model, rv, term, known) for term in graph.terms]
    if not all(found) or not any(sees_trees(term.owner.inputs) for term in graph.terms):
        return []
    return [one for one in found if one] if is_short(rv) else []


def is_short(rv: Variable) -> bool:
    """Whether a variable has few entries."""
    return rv.ndim == 0 or int(rv.size.eval()) <= MOST


def _noise(model, rv, term, known) -> Noise | None:
    op = term.owner.op
    if not any(term is one for one in model.observed_RVs):
        return None
    if not isinstance(op, NormalRV | LogNormalRV):
        return None
    if model.rvs_to_transforms.get(term) is not None:
        return None
    mean, sd = op.dist_params(term.owner)
    if rv in ancestors([mean], blockers=known) or not _can_be_evaluated(sd, rv, known):
        return None
    return Noise(term, mean, sd, isinstance(op, LogNormalRV))


def _can_be_evaluated(sd: Variable, rv: Variable, known: set[Variable]) -> bool:
    """Whether an sd is a function of the model's variables that raises no error."""
    between = dependent_on([sd], rv)
    for v in ancestors([sd], blockers=known):
        if v in known or v.owner is None:
            continue
        if isinstance(v.owner.op, RandomVariable | SymbolicRandomVariable):
            return False
        if v in between and isinstance(v.owner.op, CheckAndRaise):
            return False
    return True


# --------------------------------------------------- An sd as a few numbers, times numbers of rows


class Scaled(NamedTuple):
    """An sd that is ``scale[labels]`` times factors that are free of some variables."""

    scale: Variable
    """One number for all rows, or a vector."""
    labels: Variable | None
    """Which entry of the vector a row has, broadcast to the rows; None for one number."""
    factors: list[Variable]


PICKS = (DimShuffle, Subtensor, AdvancedSubtensor)
"""Ops that arrange or repeat entries of an array."""
OF_PRODUCTS = (
    scalars.Sqrt,
    scalars.Sqr,
    scalars.Reciprocal,
    scalars.Pow,
    scalars.Abs,
    scalars.Sign,
)
"""Functions of a product of positive numbers that are products of the function of each."""


def split_sd(sd: Variable, rvs: Sequence[Variable]) -> Scaled | None:
    """An sd as a `Scaled`, with respect to some variables; None if it is not known to be one."""
    return _split(sd, set().union(*(dependent_on([sd], rv) for rv in rvs)), set(rvs))


def _split(var: Variable, dependent: set[Variable], rvs: set[Variable]) -> Scaled | None:
    if _is_number(var):
        return Scaled(var, None, [])
    inner = passes_through(var)
    if inner is not None:
        return _split(inner, dependent, rvs)
    if var in rvs:
        return _entries(var) if var.ndim == 1 else None
    op = None if var.owner is None else var.owner.op
    if isinstance(op, PICKS):
        return _picked(var, dependent, rvs)
    return _function(var, dependent, rvs) if isinstance(op, Elemwise) else None


def _is_number(var) -> bool:
    return all(var.type.broadcastable)


def _entries(var) -> Scaled:
    n = var.type.shape[0]
    return Scaled(var, pt.arange(var.shape[0] if n is None else n), [])


def _picked(var, dependent, rvs) -> Scaled | None:
    array, *numbers = var.owner.inputs
    if array not in dependent or any(v in dependent for v in numbers):
        return None
    is_vector = array.ndim == 1 and array.type.shape[0] is not None
    split = _entries(array) if is_vector and array.type.shape[0] <= MOST else None
    if split is None:
        split = _split(array, dependent, rvs)
    if split is None or split.labels is None:
        return split if split is None or not split.factors else None
    if split.factors:
        return None
    return split._replace(labels=var.owner.op.make_node(split.labels, *numbers).outputs[0])


def _function(var, dependent, rvs) -> Scaled | None:
    """Of arrays that are split alike, and of numbers, or times arrays free of the variables."""
    op, inputs = var.owner.op, list(var.owner.inputs)
    seen = list(dict.fromkeys(v for v in inputs if v in dependent))
    seen = [v for v in seen if not _is_number(v)] or seen
    splits = [split for v in seen if (split := _split(v, dependent, rvs)) is not None]
    if len(splits) < len(seen) or not all(_are_alike(splits[0], split) for split in splits):
        return None
    labels, factors = splits[0].labels, [v for split in splits for v in split.factors]
    others = [v for v in inputs if v not in seen]
    is_once = len(inputs) == len(seen) + len(others)
    is_free = is_once and not any(v in dependent for v in others)
    are_numbers = all(map(_is_number, others))
    if is_free and (labels is None or factors or not are_numbers):
        if isinstance(op.scalar_op, scalars.Mul):
            scale = splits[0].scale
            for split in splits[1:]:
                scale = scale * split.scale
            return Scaled(scale, labels, others + factors)
        if isinstance(op.scalar_op, scalars.TrueDiv) and len(seen) == 1:
            [split] = splits
            if seen[0] is inputs[0]:
                return split._replace(factors=[1.0 / v for v in others] + factors)
            return Scaled(1.0 / split.scale, labels, others + [1.0 / v for v in factors])
    is_of_product = isinstance(op.scalar_op, OF_PRODUCTS) and is_free and seen == inputs[:1]
    if not are_numbers or (factors and not is_of_product):
        return None

    def applied(parts):
        known = dict(zip(seen, parts, strict=True))
        return op(*(known[v] if v in known else v.sum() for v in inputs))

    return Scaled(applied([s.scale for s in splits]), labels, [applied([v]) for v in factors])


def _are_alike(one: Scaled, other: Scaled) -> bool:
    """Whether rows have the same labels."""
    if one.labels is None or other.labels is None:
        return one.labels is other.labels
    return one.labels is other.labels or equal_computations([one.labels], [other.labels])


# ----------------------------------------------- The density of such variables, given the residuals


class SummedDensity:
    """Log density of variables' values, their priors and their rows, up to a constant.

    Parameters
    ----------
    model : pymc.Model
    rvs : list of TensorVariable
        Free variables of the model.
    scales : list of Variable
        Of each observed variable that they are the noise of, the `Scaled.scale`.
    compile_kwargs : dict, optional
        Of `pymc.compile`.
    """

    def __init__(self, model: pm.Model, rvs, scales: list[Variable], compile_kwargs=None):
        first = [model.rvs_to_values[rv] for rv in rvs]
        log_density = model.logp(vars=list(rvs))
        for k, sd in enumerate(model.replace_rvs_by_values(scales)):
            vector = not _is_number(sd)
            sd = sd if vector else sd.sum()
            # the root of the sum of squares and not the sum: for a tiny sd its square is 0
            root, count = (
                pt.tensor(f"{name}_{k}", dtype="float64", shape=(None,) * vector)
                for name in ("root", "count")
            )
            of_rows = -count * pt.log(sd) - 0.5 * (root / sd) ** 2
            of_rows = pt.switch(sd > 0, of_rows, -np.inf)
            if vector:  # no row says anything of an entry that has none
                of_rows = pt.sum(pt.switch(count > 0, of_rows, 0.0))
            log_density = log_density + of_rows
            first += [root, count]
        self._log_density, self._parents = compiled_at(model, first, log_density, compile_kwargs)
        self._log_density.trust_input = True

    def at(self, point: dict, sums: Sequence) -> Callable[..., float]:
        """The log density at a point, as a function of the values.

        Parameters
        ----------
        sums
            Of each observed variable: the root of the sum of squares of its rows, and how many
            there are; or vectors of both.
        """
        given = [np.asarray(v) for v in sums] + numbers_at(point, self._parents)
        return lambda *values: float(self._log_density(*values, *given))


class NoiseDensity:
    """Log density of variables given everything else: by sums over rows, or row by row.

    Parameters
    ----------
    model : pymc.Model
    rvs : list of TensorVariable
        Free variables that have a `read_noise`.
    noises : list of Noise
        All that they enter.
    compile_kwargs : dict, optional
        Of `pymc.compile`.
    """

    def __init__(self, model: pm.Model, rvs, noises: Sequence[Noise], compile_kwargs=None):
        splits = [one for noise in noises if (one := split_sd(noise.sd, rvs)) is not None]
        self._summed = None
        if len(splits) == len(noises):
            sums = []
            for noise, split in zip(noises, splits, strict=True):
                sums += _sums(noise.residual(model), split)
            sums = model.replace_rvs_by_values(sums)
            scales = [split.scale for split in splits]
            self._summed = SummedDensity(model, rvs, scales, compile_kwargs)
            self._numbers, self._needs = compiled_at(model, [], sums, compile_kwargs)
            return
        of_rows = []
        for noise in noises:
            each = -pt.log(noise.sd) - 0.5 * (noise.residual(model) / noise.sd) ** 2
            of_rows.append(pt.switch(pt.all(noise.sd > 0), pt.sum(each), -np.inf))
        total = model.logp(vars=list(rvs)) + sum(model.replace_rvs_by_values(of_rows))
        values = [model.rvs_to_values[rv] for rv in rvs]
        total, expressions, free = cut_free(total, *values)
        self._numbers, self._needs = compiled_at(model, [], expressions, compile_kwargs)
        self._density = pm.compile([*values, *free], total, **(compile_kwargs or {}))
        self._density.trust_input = True

    def at(self, point: dict) -> Callable[..., float]:
        """The log density at a point, as a function of the values, which are arrays."""
        numbers = self._numbers(*numbers_at(point, self._needs))
        if self._summed is None:
            return lambda *values: float(self._density(*values, *numbers))
        if not all(np.isfinite(root).all() for root in numbers[::2]):
            return lambda *values: np.nan
        return self._summed.at(point, numbers)


def _sums(residual: Variable, split: Scaled) -> list[Variable]:
    """Roots of the sums of squares of scaled residuals, and numbers of rows."""
    for factor in split.factors:
        residual = residual / pt.switch((factor > 0) & ~pt.isinf(factor), factor, np.nan)
    if split.labels is None:
        return [pt.sqrt(pt.sum(residual**2)), residual.size.astype("float64")]
    labels = pt.broadcast_to(split.labels, residual.shape).ravel()
    zeros = pt.zeros(split.scale.shape)
    squares = pt.inc_subtensor(zeros[labels], residual.ravel() ** 2)
    return [pt.sqrt(squares), pt.inc_subtensor(zeros[labels], 1.0)]
