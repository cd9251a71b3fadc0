"""Whole trees redrawn by conditional SMC: the arrays of one forest, and one call."""

from functools import partial

import numpy as np

from pymc_trees.core.columns.mixed import from_prior
from pymc_trees.core.histograms.binning import make_bins
from pymc_trees.core.histograms.contract import n_planes
from pymc_trees.core.interrupts import run_apart
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.samplers.particle_gibbs.surrogate_sweep import surrogate_sweep
from pymc_trees.core.samplers.particle_gibbs.sweep import particle_sweep
from pymc_trees.core.samplers.particles.optimal import make_look_ahead
from pymc_trees.core.samplers.particles.particles import make_particles
from pymc_trees.core.samplers.particles.proposals import PROPOSALS
from pymc_trees.core.samplers.particles.resampling import SCHEMES

BINS = 50
"""Intervals per column among which the optimal proposal chooses before it looks inside one."""

COLUMNS = 10
"""Columns it looks at on average, beside those of the present tree, when there are more."""

LONG = 300_000
"""Rows times trees times particles beyond which an interrupt cannot wait for the call."""

WITH_SURROGATE = ("rowwise", "joint")
"""Kinds of targets whose trees grow under a surrogate."""


class TreeRedraw:
    """Redraws trees of a forest from the root.

    Parameters
    ----------
    forest : WorkingForest
        The forest.
    num_particles : int
        Particles, the present tree included.
    proposal, resampling : str
        As for `ParticleGibbs`.
    """

    def __init__(self, forest, num_particles, proposal, resampling):
        self.forest = forest
        self.proposal, self.scheme = PROPOSALS.index(proposal), SCHEMES.index(resampling)
        n, n_stats = forest.design.columns.shape[1], forest.work.stats.shape[1]
        room = min(2 * n - 1, forest.layout.max_nodes - forest.layout.m + 1)
        self.particles = make_particles(int(num_particles), room, n, n_stats)
        self.bins = make_bins(forest.design.columns, BINS, from_prior(forest.design))
        self._look = None
        self._surrogate = None
        if forest.target.kind in WITH_SURROGATE:
            self._surrogate = make_normal(0.0, 1.0, np.zeros(n), np.ones(n), 1)

    def redraw(self, rng, trees, prior, leaf, share, tuning):
        """Redraw a share of the trees; in tuning, one that finds no room is not taken.

        Returns
        -------
        changed, ess : float, or None
            Share of them that another particle replaced, and their mean effective number of
            particles; None when the forest outgrew its pool.
        """
        sweep, leaves = particle_sweep, [leaf]
        if self._surrogate is not None:
            sweep, leaves = surrogate_sweep, [leaf, self._surrogate]
        tabled = leaves[-1]
        if self._look is None or self._look.tables.cells.shape[1] != n_planes(tabled):
            n_particles, room = self.particles.column.shape
            columns = min(1.0, COLUMNS / self.bins.codes.shape[1])
            self._look = make_look_ahead(tabled, self.bins, n_particles, room, columns)
        m = self.forest.layout.m
        n_updated = int(np.ceil(share * m))
        first = 0 if n_updated == m else int(rng.integers(m))
        outcome = np.zeros(2)
        redraw = partial(
            sweep,
            rng,
            trees,
            self.forest.design,
            self.bins,
            prior,
            *leaves,
            self.proposal,
            self.scheme,
            self.particles,
            self._look,
            self.forest.work,
            first,
            n_updated,
            tuning,
            outcome,
        )
        n_particles, n = self.particles.rows.shape
        long = n_particles * n * n_updated > LONG
        fits = run_apart(redraw, self.particles.cease) if long else redraw()
        return tuple(outcome / n_updated) if fits else None


def check_num_particles(num_particles) -> int:
    """Number of particles, or an error."""
    if (
        isinstance(num_particles, bool)
        or not isinstance(num_particles, int | np.integer)
        or num_particles < 2
    ):
        raise ValueError(
            f"num_particles={num_particles!r}: must be a whole number of at least 2, the "
            "present tree and one more."
        )
    return int(num_particles)


def check_batch(batch) -> tuple[float, float]:
    """Shares of the trees while tuning and after, or an error."""
    try:
        tuning, after = (float(share) for share in batch)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"batch={batch!r}: must be two shares of the trees, while tuning and after."
        ) from error
    if not (0 < tuning <= 1 and 0 < after <= 1):
        raise ValueError(f"batch={batch!r}: both shares must be in (0, 1].")
    return tuning, after
