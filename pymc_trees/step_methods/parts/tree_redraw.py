"""Whole trees redrawn by conditional SMC, as a part of a step."""

from functools import partial

import numpy as np

from pymc_trees.arguments import check_choice, check_number
from pymc_trees.core.columns.mixed import rules_from_prior
from pymc_trees.core.histograms.binning import make_bins
from pymc_trees.core.histograms.contract import histogram_layout
from pymc_trees.core.interrupts import run_interruptible
from pymc_trees.core.leaves.nonconjugate.gaussian import make_near
from pymc_trees.core.samplers.growth import Growth
from pymc_trees.core.samplers.optimal import make_look_ahead
from pymc_trees.core.samplers.particle_gibbs import (
    Batch,
    growth_by_address,
    particle_handles,
    particle_sweep,
)
from pymc_trees.core.samplers.particles import make_particles
from pymc_trees.core.samplers.proposals import PROPOSALS
from pymc_trees.core.samplers.resampling import CONDITIONAL_SCHEMES
from pymc_trees.step_methods.parts.contract import Part
from pymc_trees.step_methods.parts.local_moves import CHANGES, VISITS

BINS = 50
"""Intervals per column among which the optimal proposal chooses before refining one."""

COLUMNS = 10
"""Mean number of candidate columns in addition to those of the current tree, if there are more."""

LONG = 300_000
"""Rows times trees times particles beyond which interrupts are handled during the call."""


class TreeRedraw(Part):
    """Trees redrawn from the root, as a part of a step.

    Parameters
    ----------
    num_particles : int
        Number of particles, the current tree included.
    proposal, resampling : str
        As for `ParticleGibbs`.
    batch : tuple of two floats
        Share of the trees redrawn by a step while tuning and after.
    chance : callable, optional
        Of a forest: probability that a step redraws trees at all; by default it does.
    """

    statistics: tuple[str, ...] = ("particle_ess", "trees_changed")

    def __init__(self, num_particles, proposal, resampling, batch, chance=None):
        more = ", the present tree and one more"
        self.num_particles = check_number("num_particles", num_particles, 2, more)
        check_choice("proposal", proposal, PROPOSALS)
        check_choice("resampling", resampling, CONDITIONAL_SCHEMES)
        self.proposal, self.scheme = (
            PROPOSALS.index(proposal),
            CONDITIONAL_SCHEMES.index(resampling),
        )
        self.batch, self.chance = check_batch(batch), chance
        self.arrays: dict[str, RedrawArrays] = {}

    def chance_of(self, forest) -> float:
        """Probability that a step redraws trees at all."""
        return 1.0 if self.chance is None else self.chance(forest)

    def prepare(self, forest):
        """Make the workspace of a forest."""
        self.arrays[forest.name] = RedrawArrays(forest, self.num_particles)

    def update(self, rng, forest, problem, tuning):
        """Redraw a share of the trees; in tuning, one that does not fit is refused.

        The share of these that another particle replaced and their mean effective number of
        particles, NaN if none was redrawn, or None if the forest outgrew its pool.
        """
        chance = self.chance_of(forest)
        if chance < 1.0 and rng.random() >= chance:
            return {"trees_changed": np.nan, "particle_ess": np.nan}
        particles, m = self.arrays[forest.name].particles, forest.layout.m
        n_updated = int(np.ceil(self.batch[0 if tuning else 1] * m))
        batch = Batch(0 if n_updated == m else int(rng.integers(m)), n_updated, tuning)
        outcome = np.zeros(2)
        redraw = self._redraw(rng, forest, problem, batch, outcome)
        long = self.num_particles * forest.layout.n_rows * n_updated > LONG
        fits = run_interruptible(redraw, particles.stop_flag) if long else redraw()
        if not fits:
            return None
        changed, ess = outcome / n_updated
        counts = {VISITS: n_updated, CHANGES: int(outcome[0])}
        return {"trees_changed": changed, "particle_ess": ess} | counts

    def compilation(self, rng, forest, problem):
        """Compile the sweep of redraws."""

        def compile_sweep():
            run = self._redraw(rng, forest, problem, Batch(0, 0, False), np.zeros(2))
            forest.call.compile(*run.args)

        return [compile_sweep]

    def _redraw(self, rng, forest, problem, batch, outcome):
        """Redraws of a batch, as a function without arguments."""
        arrays = self.arrays[forest.name]
        look = arrays.look_ahead(arrays.surrogate or problem.leaf)
        growth = Growth(arrays.particles, arrays.bins, look, self.proposal, forest.work.buffer)
        start = growth_by_address(arrays.handles, problem, growth, arrays.surrogate, forest.work)
        given = growth, self.scheme, forest.work, batch, outcome
        return partial(forest.call, particle_sweep, rng, *start, *given)


class RedrawArrays:
    """Workspace in which the trees of one forest are redrawn."""

    def __init__(self, forest, num_particles):
        n, n_stats = forest.design.columns.shape[1], forest.work.stats.shape[1]
        most_nodes = min(2 * n - 1, forest.layout.max_nodes - forest.layout.m + 1)
        self.particles = make_particles(num_particles, most_nodes, n, n_stats)
        order = forest.work.index.order
        self.bins = make_bins(forest.design.columns, BINS, rules_from_prior(forest.design), order)
        self.surrogate = None
        if forest.target.needs_surrogate:
            k = forest.layout.n_values
            self.surrogate = make_near(np.zeros(k), np.ones(k), n, 1)
        self.handles, self._look = particle_handles(), None

    def look_ahead(self, leaf):
        """Workspace of the optimal proposal under a leaf model."""
        if self._look is None or self._look.histograms.sums.shape[1] != histogram_layout(leaf)[0]:
            n_particles, most_nodes = self.particles.column.shape
            columns = min(1.0, COLUMNS / self.bins.codes.shape[1])
            self._look = make_look_ahead(leaf, self.bins, n_particles, most_nodes, columns)
        return self._look


def check_batch(batch) -> tuple[float, float]:
    """Shares of the trees while tuning and after, or an error."""
    try:
        tuning, after = (float(share) for share in batch)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"batch={batch!r}: must be two shares of the trees, during tuning and afterwards."
        ) from error
    if not (0 < tuning <= 1 and 0 < after <= 1):
        raise ValueError(f"batch={batch!r}: both shares must be in (0, 1].")
    return tuning, after
