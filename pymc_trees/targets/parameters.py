"""Other parameters of a likelihood: scales of the noise around forests, and any few of its own."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.scalar import basic as scalars
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.basic import LogNormalRV, NormalRV

from pymc_trees.distributions.tree_variable import is_tree_variable, tree_variables
from pymc_trees.targets.conjugate import LatentTarget
from pymc_trees.targets.contract import Target
from pymc_trees.targets.graph import cut_free, dependent_on, open_forest, passes_through, read_graph
from pymc_trees.targets.rowwise import RowwiseTarget
from pymc_trees.targets.settings import compile_values, compiled_at, numbers_at


class Noise(NamedTuple):
    """``observed ~ Normal(mean, scale * factors)``, in which a variable only affects the scale.

    Or a LogNormal: then the logarithm of the observations is normal.
    """

    observed: Variable
    """The observed variable."""
    mean: Variable
    scale: Variable
    """One number for all rows, a function of the variable and of data."""
    factors: list[Variable]
    """Data that the scale is multiplied by: numbers of each row or of all."""
    of_logs: bool


def read_noise(model: pm.Model, rv: Variable) -> Noise | None:
    """The noise that a scalar variable scales, if it enters nothing else.

    Returns
    -------
    Noise or None
        None unless the variable enters one observed Normal or LogNormal, whose mean sees a forest
        but not the variable, and whose sd is a function of the variable times data.
    """
    if not _is_number(model, rv):
        return None
    variables = tree_variables(model)
    if any(tree.moves_with_all for tree in variables):
        return None
    trees = [tree.rv for tree in variables]

    def seen_by(variables):
        return [v for v in ancestors(variables, blockers=model.basic_RVs) if v in known]

    known = set(model.basic_RVs)
    if any(v in trees for v in seen_by(rv.owner.inputs)):
        return None
    graph = read_graph(model, rv)
    if graph.potentials or len(graph.terms) != 1:
        return None
    [observed] = graph.terms
    distribution = observed.owner.op
    if observed not in model.observed_RVs or not isinstance(distribution, NormalRV | LogNormalRV):
        return None
    if model.rvs_to_transforms.get(observed) is not None:
        return None
    mean, sd = distribution.dist_params(observed.owner)
    in_mean = seen_by([mean])
    if rv in in_mean or not any(v in trees for v in in_mean) or seen_by([sd]) != [rv]:
        return None
    product = _product(sd, rv)
    of_logs = isinstance(distribution, LogNormalRV)
    return None if product is None else Noise(observed, mean, *product, of_logs)


def _is_number(model, rv):
    """Whether a variable is a free one of one real number, as its value is."""
    if not isinstance(rv, Variable) or not any(rv is free for free in model.free_RVs):
        return False
    return all(v.dtype == "float64" and v.ndim == 0 for v in (rv, model.rvs_to_values[rv]))


def _product(sd: Variable, rv: Variable) -> tuple[Variable, list[Variable]] | None:
    """Scale and factors of an sd that sees one variable, if the Ops in between are known."""
    between = dependent_on([sd], rv)
    for v in between - {rv}:
        # checks of parameters are not among the supported Ops
        if passes_through(v) is None and not isinstance(v.owner.op, Elemwise | DimShuffle):
            return None
    factors: list[Variable] = []
    while not all(sd.type.broadcastable):
        inner = passes_through(sd)
        if inner is not None:
            sd = inner
            continue
        op, inputs = sd.owner.op, list(sd.owner.inputs)
        if not isinstance(op, Elemwise):
            return None
        one = [v for v in inputs if v in between]
        others = [v for v in inputs if v not in between]
        if len(one) != 1:
            return None
        if isinstance(op.scalar_op, scalars.Mul):
            factors += others
        elif isinstance(op.scalar_op, scalars.TrueDiv) and one[0] is inputs[0]:
            factors += [1.0 / v for v in others]
        else:
            return None
        [sd] = one
    return sd, factors


# ------------ The density of the scale of the noise around forests, given the rows' sum of squares


class NoiseDensity:
    """Log density of a variable's value, its prior and its rows, up to a constant.

    Parameters
    ----------
    model : pymc.Model
    rv : TensorVariable
        A free variable of one number.
    noise : Noise
        What it is the noise of.
    compile_kwargs : dict, optional
        Of `pymc.compile`.
    """

    def __init__(self, model: pm.Model, rv: Variable, noise: Noise, compile_kwargs=None):
        value = model.rvs_to_values[rv]
        [sd] = model.replace_rvs_by_values([noise.scale])
        # the root of the sum of squares and not the sum: for a tiny sd its square is 0
        sd, root, count = sd.sum(), pt.dscalar("root"), pt.dscalar("count")
        of_rows = -count * pt.log(sd) - 0.5 * (root / sd) ** 2
        log_density = model.logp(vars=[rv]) + pt.switch(sd > 0, of_rows, -np.inf)
        first = [value, root, count]
        self._log_density, self._parents = compiled_at(model, first, log_density, compile_kwargs)
        self._log_density.trust_input = True

    def at(self, point: dict, root, count) -> Callable[[float], float]:
        """The log density at a point, ``count`` rows having the root of a sum of squares."""
        parents = numbers_at(point, self._parents)
        root, count = np.asarray(root), np.asarray(count)
        return lambda value: float(self._log_density(np.array(value), root, count, *parents))


# ------------------- Other variables of a forest's likelihood, and their conditional distributions


MOST = 10
"""Maximal size of such a variable: its entries are drawn one by one."""


def read_nuisances(model: pm.Model, forest: Variable, target: Target) -> list[Variable]:
    """Small continuous variables that only enter the likelihood of a forest.

    None if leaf values integrate out without latent variables, or if all rows must be evaluated
    together: an evaluation then costs at least as much as a sweep.
    """
    if not isinstance(target, LatentTarget | RowwiseTarget):
        return []
    terms = read_graph(model, forest).terms
    return [rv for rv in model.free_RVs if _is_nuisance(model, rv, terms)]


def _is_nuisance(model: pm.Model, rv: Variable, terms: list[Variable]) -> bool:
    value = model.rvs_to_values[rv]
    if is_tree_variable(rv) or rv.dtype != "float64" or value.dtype != "float64" or rv.ndim > 1:
        return False
    if any(is_tree_variable(v) for v in ancestors([rv])):
        return False
    graph = read_graph(model, rv)
    if graph.potentials or not all(term in model.observed_RVs for term in graph.terms):
        return False
    if not any(term in terms for term in graph.terms):
        return False
    return rv.ndim == 0 or int(rv.size.eval()) <= MOST


class Conditional:
    """Log-density of a variable given the outputs of a forest and the rest of a point.

    Subexpressions that do not depend on the variable are computed once (`at`).

    Parameters
    ----------
    model : pymc.Model
        The model.
    forest : Variable
        A forest of it.
    rv : Variable
        One of its `read_nuisances`.
    """

    def __init__(self, model: pm.Model, forest: Variable, rv: Variable):
        self.name = model.rvs_to_values[rv].name
        terms = model.logp(vars=[rv, *read_graph(model, rv).terms], sum=False)
        terms, outputs = open_forest(read_graph(model, forest), terms)
        value = model.rvs_to_values[rv]
        total, expressions, free = cut_free(sum(term.sum() for term in terms), value)
        self._numbers, self._names = compile_values(model, expressions, [outputs])
        self._density = pm.compile([value, *free], total, on_unused_input="ignore")
        self._density.trust_input = True

    def at(self, point: dict, outputs):
        """Log-density at a point, as a function of the value of the variable, an array."""
        numbers = self._numbers(outputs, *(point[name] for name in self._names))
        density = self._density
        return lambda value: float(density(value, *numbers))
