"""Whole trees redrawn by conditional SMC, as a kernel of a step."""

from functools import partial

import numpy as np

from pymc_trees.arguments import check_choice, check_number
from pymc_trees.core.columns.mixed import rules_from_prior
from pymc_trees.core.histograms.contract import histogram_layout, make_bins
from pymc_trees.core.interrupts import run_interruptible
from pymc_trees.core.leaves.nonconjugate.coefficients import CoefficientRows
from pymc_trees.core.leaves.nonconjugate.gaussian import make_gaussian_leaf
from pymc_trees.core.samplers.growth import Growth
from pymc_trees.core.samplers.optimal import make_look_ahead
from pymc_trees.core.samplers.particle_gibbs import (
    Batch,
    growth_by_address,
    particle_handles,
    particle_sweep,
)
from pymc_trees.core.samplers.particles import CONDITIONAL_SCHEMES, make_particles
from pymc_trees.core.samplers.proposals import PROPOSALS
from pymc_trees.step_methods.kernels.acceptance import AcceptanceRates, adapted_probability
from pymc_trees.step_methods.kernels.contract import CHANGES, VISITS, Kernel

BINS = 50
"""Intervals per column among which the optimal proposal chooses before refining one."""

COLUMNS = 10
"""Mean number of candidate columns in addition to those of the current tree, if there are more."""

LONG = 300_000
"""Rows times trees times particles beyond which interrupts are handled during the call."""


class TreeRedraw(Kernel):
    """Trees redrawn from the root.

    Parameters
    ----------
    num_particles : int
        Number of particles, the current tree included.
    proposal, resampling : str
        As for `ParticleGibbs`.
    batch : tuple of two floats
        Share of the trees redrawn by a step while tuning and after.
    adaptive : bool
        Whether steps redraw trees less often where tuning shows that these are rarely accepted.
    """

    def __init__(self, num_particles, proposal, resampling, batch, adaptive=False):
        more = ", the present tree and one more"
        self.num_particles = check_number("num_particles", num_particles, 2, more)
        check_choice("proposal", proposal, PROPOSALS)
        check_choice("resampling", resampling, CONDITIONAL_SCHEMES)
        self.proposal, self.scheme = (
            PROPOSALS.index(proposal),
            CONDITIONAL_SCHEMES.index(resampling),
        )
        self.batch, self.adaptive = check_batch(batch), adaptive
        self._workspaces: dict[str, RedrawWorkspace] = {}

    def statistics(self, forest):
        """Of the redrawn trees, and the probability if it is adapted."""
        names = ["particle_ess", "trees_changed"]
        return dict.fromkeys([*names, "redraw_probability"] if self.adaptive else names, ())

    def probability_of(self, rates: AcceptanceRates | None) -> float:
        """Probability that a step redraws trees at all."""
        return 1.0 if rates is None else adapted_probability(rates)

    def workspace(self, forest) -> "RedrawWorkspace":
        """Arrays in which the trees of a forest are redrawn, made when they are first used."""
        if forest.name not in self._workspaces:
            self._workspaces[forest.name] = RedrawWorkspace(forest, self.num_particles)
        return self._workspaces[forest.name]

    def update(self, rng, state, data):
        """Redraw a share of the trees; while tuning, one that does not fit is rejected.

        The statistics are the share of these that another particle replaced and their mean
        effective number of particles, NaN if none was redrawn.
        """
        probability = self.probability_of(state)
        if data.forest.has_random_columns:
            probability = 0.0  # particles see rows and reference rows as one
        stats: dict = {"redraw_probability": probability} if self.adaptive else {}
        if probability < 1.0 and rng.random() >= probability:
            return state, stats | {"trees_changed": np.nan, "particle_ess": np.nan}
        m, n_rows = data.forest.layout.m, data.forest.layout.n_rows
        n_updated = int(np.ceil(self.batch[0 if data.tuning else 1] * m))
        batch = Batch(0 if n_updated == m else int(rng.integers(m)), n_updated, data.tuning)
        outcome = np.zeros(2)
        redraw = self._redraw(rng, data, batch, outcome)
        long = self.num_particles * n_rows * n_updated > LONG
        stop_flag = self.workspace(data.forest).particles.stop_flag
        if not (run_interruptible(redraw, stop_flag) if long else redraw()):
            raise data.forest.too_large()
        changed, ess = outcome / n_updated
        if self.adaptive and data.tuning:
            state = (state or AcceptanceRates.start(1)).updated([changed])
        counts = {VISITS: n_updated, CHANGES: int(outcome[0])}
        return state, stats | {"trees_changed": changed, "particle_ess": ess} | counts

    def compilation(self, rng, data):
        """Compile the sweep of redraws."""
        if data.forest.has_random_columns:
            return []

        def compile_sweep():
            run = self._redraw(rng, data, Batch(0, 0, False), np.zeros(2))
            data.forest.call.compile(*run.args)

        return [compile_sweep]

    def _redraw(self, rng, data, batch, outcome):
        """Redraws of a batch, as a function without arguments."""
        forest, problem, work = data.forest, data.problem, data.work
        space = self.workspace(forest)
        surrogate = space.surrogate
        if isinstance(problem.leaf, CoefficientRows):
            surrogate = problem.leaf.gaussian
        look = space.look_ahead(surrogate or problem.leaf)
        growth = Growth(space.particles, space.bins, look, self.proposal, work.buffer)
        start = growth_by_address(space.handles, problem, growth, surrogate, work)
        arguments = growth, self.scheme, work, batch, outcome
        return partial(forest.call, particle_sweep, rng, *start, *arguments)

    def __getstate__(self):
        """State without workspaces, which are made anew."""
        return {**self.__dict__, "_workspaces": {}}


class RedrawWorkspace:
    """Arrays in which the trees of one forest are redrawn."""

    def __init__(self, forest, num_particles):
        n, n_stats = forest.layout.n_rows, forest.target.n_stats
        most_nodes = min(2 * n - 1, forest.layout.max_nodes - forest.layout.m + 1)
        self.particles = make_particles(num_particles, most_nodes, n, n_stats)
        order = forest.row_index.order
        self.bins = make_bins(forest.design.columns, BINS, rules_from_prior(forest.design), order)
        self.surrogate = None
        coefficients = getattr(forest.target, "has_coefficients", False)
        if forest.target.needs_surrogate and not coefficients:
            k = forest.layout.n_values
            self.surrogate = make_gaussian_leaf(np.zeros(k), np.ones(k), n, 1)
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
