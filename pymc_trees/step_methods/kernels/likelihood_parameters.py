"""Other parameters of a forest's likelihood, updated between the sweeps of a step.

Such a variable (the shape of a NegativeBinomial, the scale of a StudentT, cut points) is correlated
with f, so both mix slowly if it is drawn once per step. Here each of its numbers is drawn from its
conditional by slice sampling, given the outputs of the forest; latent variables of rows are not
conditioned on, and are redrawn afterwards. Other steps that sample the variable continue to do so:
each is a kernel that leaves the posterior invariant (Tierney 1994).
"""

from collections.abc import Mapping

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_trees.core.samplers.slice_draw import INITIAL_WIDTH, adapted_width, slice_draw
from pymc_trees.distributions.tree_variable import is_tree_variable
from pymc_trees.targets.conjugate import LatentTarget
from pymc_trees.targets.contract import Target
from pymc_trees.targets.forest_state import ForestData
from pymc_trees.targets.graph import cut_free, moves_rows, open_forest, read_graph
from pymc_trees.targets.rowwise import RowwiseTarget
from pymc_trees.targets.settings import compile_values
from pymc_trees.targets.soft_forest_state import SoftForestData

# -------------------- Other variables of a forest's likelihood, and their conditional distributions


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
    if not any(term in terms for term in graph.terms) or moves_rows(model, rv):
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


ROWS = 100_000, 500_000
"""Rows times trees to sweep before a draw where there are more than two rounds.

The first where leaf values do not integrate out. A draw then takes less than a fifth of the time
(benchmarks).
"""

EVALUATIONS = "nuisance_evaluations"
"""Name of the statistic: evaluations of densities."""

Widths = Mapping[str, tuple[np.ndarray, int]]
"""By variable, the widths of the slices for its entries, and the steps of tuning they rest on."""


class LikelihoodParameters:
    """Other variables of the likelihood of one forest.

    Parameters
    ----------
    model : pymc.Model
        The model.
    forest : ForestData
        The forest.
    """

    def __init__(self, model: pm.Model, forest: ForestData | SoftForestData):
        rv, self.forest = model[forest.name], forest
        names = read_nuisances(model, rv, forest.target)
        self.conditionals = [Conditional(model, rv, one) for one in names]

    def rounds(self, n_sweeps: int) -> list[int | None]:
        """Numbers of sweeps between draws, of those of a step; None for all of them."""
        if not self.conditionals:
            return [None]
        layout = self.forest.layout
        rows = ROWS[0 if self.forest.target.needs_surrogate else 1]
        n = min(n_sweeps, max(2, n_sweeps * layout.n_rows * layout.m // rows))
        return [(n_sweeps + k) // n for k in range(n)]

    def draw(
        self, rng, widths: Widths, point: dict, fit: np.ndarray, tuning: bool
    ) -> tuple[Widths, dict, int]:
        """Draw each variable: adapted widths, new point, number of density evaluations."""
        point, evaluations, adapted = dict(point), 0, dict(widths)
        for one in self.conditionals:
            value = np.array(point[one.name], dtype=np.float64)
            of_entries, n_tuned = widths.get(one.name, (np.full(value.size, INITIAL_WIDTH), 0))
            of_entries, log_density = of_entries.copy(), one.at(point, fit)
            for j in range(value.size):
                new, count = _draw_one(rng, log_density, value, j, of_entries[j])
                evaluations += count
                if np.isnan(new):  # left to the other steps
                    continue
                if tuning:
                    change = abs(new - value.flat[j])
                    of_entries[j] = adapted_width(of_entries[j], change, n_tuned)
                value.flat[j] = new
            if tuning:
                adapted[one.name] = of_entries, n_tuned + 1
            point[one.name] = value
        return adapted, point, evaluations


def without_repeats(several: list[LikelihoodParameters]) -> None:
    """Leave out what a forest in the weights of a mixture draws, if the one in a component does.

    Given which component each row belongs to, the weights say nothing of a component's parameters.
    """
    others = [one for one in several if not _is_of_weights(one.forest.target)]
    drawn = {conditional.name for one in others for conditional in one.conditionals}
    for one in several:
        if _is_of_weights(one.forest.target):
            one.conditionals = [c for c in one.conditionals if c.name not in drawn]


def _is_of_weights(target) -> bool:
    return isinstance(target, LatentTarget) and target.is_of_weights


def _draw_one(rng, log_density, value, j, width):
    """Draw one entry of an array, given the others; NaN if the density is 0 at the start."""
    changed = value.copy()

    def along(number):
        changed.flat[j] = number
        return log_density(changed)

    with np.errstate(all="ignore"):
        return slice_draw(rng, along, float(value.flat[j]), width)
