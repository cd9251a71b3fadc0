"""Other parameters of a forest's likelihood, updated between the sweeps of a step.

Such a variable (the shape of a NegativeBinomial, the scale of a StudentT, cut points) is correlated
with f, so both mix slowly if it is drawn once per step. Here each of its numbers is drawn from its
conditional by slice sampling, given the outputs of the forest; latent variables of rows are not
conditioned on, and are redrawn afterwards. Other steps that sample the variable continue to do so:
each is a kernel that leaves the posterior invariant (Tierney 1994).
"""

from copy import deepcopy
from typing import Any

import numpy as np
import pymc as pm

from pymc_trees.core.samplers.slice_draw import INITIAL_WIDTH, adapted_width, slice_draw
from pymc_trees.step_methods.parts.local_moves import LocalMoves
from pymc_trees.targets.forest_state import WorkingForest
from pymc_trees.targets.nuisance import Conditional, read_nuisances

ROWS = 100_000, 500_000
"""Rows times trees to sweep before a draw where there are more than two rounds.

The first where leaf values do not integrate out. A draw then takes less than a fifth of the time
(benchmarks).
"""


class Nuisances:
    """Draws of other variables of the likelihoods of forests.

    Parameters
    ----------
    model : pymc.Model
        The model.
    forests : list of WorkingForest
        Those of a step.
    local : LocalMoves or None
        Sweeps of the step; None for no draws.
    """

    statistic = "nuisance_evaluations"

    def __init__(self, model: pm.Model, forests: list[WorkingForest], local: LocalMoves | None):
        self.local = local
        self.laws: dict[str, list[Conditional]] = {}
        """By forest, the densities of the variables that are drawn with it."""
        for forest in forests if local else []:
            rv = model[forest.name]
            found = read_nuisances(model, rv, forest.target)
            if found:
                self.laws[forest.name] = [Conditional(model, rv, one) for one in found]
        self.kept: dict[str, Any] = {}
        """By variable, the widths for its entries, and the number of draws in tuning."""

    def rounds(self, forest: WorkingForest) -> list[tuple[int, ...]]:
        """Numbers of sweeps between draws; () for all sweeps of a step."""
        if self.local is None or forest.name not in self.laws:
            return [()]
        sweeps = self.local.sweeps_of(forest)
        rows = ROWS[0 if forest.target.needs_surrogate else 1]
        n = min(sweeps, max(2, sweeps * forest.layout.n_rows * forest.layout.m // rows))
        return [((sweeps + k) // n,) for k in range(n)]

    def draw(self, rng, forest: WorkingForest, point: dict, fit: np.ndarray, tuning: bool):
        """The point with new values, and the number of density evaluations."""
        point, evaluations = dict(point), 0
        for law in self.laws[forest.name]:
            value = np.array(point[law.name], dtype=np.float64)
            widths, n_tuned = self.kept.get(law.name, (np.full(value.size, INITIAL_WIDTH), 0))
            widths, log_density = widths.copy(), law.at(point, fit)
            for j in range(value.size):
                new, count = _draw_one(rng, log_density, value, j, widths[j])
                evaluations += count
                if np.isnan(new):  # left to the other steps
                    continue
                if tuning:
                    change = abs(new - value.flat[j])
                    widths[j] = adapted_width(widths[j], change, n_tuned)
                value.flat[j] = new
            if tuning:
                self.kept[law.name] = widths, n_tuned + 1
            point[law.name] = value
        return point, evaluations

    def __getstate__(self):
        """State with a copy of the data of a chain."""
        return {**self.__dict__, "kept": deepcopy(self.kept)}


def _draw_one(rng, log_density, value, j, width):
    """Draw one entry of an array, given the others; NaN if the density is 0 at the start."""
    changed = value.copy()

    def along(number):
        changed.flat[j] = number
        return log_density(changed)

    with np.errstate(all="ignore"):
        return slice_draw(rng, along, float(value.flat[j]), width)
