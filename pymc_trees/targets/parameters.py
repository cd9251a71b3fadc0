"""Other variables of a forest's likelihood, and their conditional distributions."""

import pymc as pm
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_trees.distributions.tree_variable import is_tree_variable
from pymc_trees.targets.conjugate import LatentTarget
from pymc_trees.targets.contract import Target
from pymc_trees.targets.graph import cut_free, open_forest, read_graph
from pymc_trees.targets.rowwise import RowwiseTarget
from pymc_trees.targets.settings import compile_values

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
