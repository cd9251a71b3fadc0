"""Top-down sequential Monte Carlo for one tree (Lakshminarayanan thesis, algorithm 3.1).

All particles grow from the root. After each stage, when the weights have become uneven, they are
resampled and every weight becomes the mean W / C. With W the sum of the final weights, W / C is an
unbiased estimate of the evidence, and weighted averages over the particles times W / C are of the
unnormalised posterior's integrals.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.borrow import borrowed
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.rows import all_rows
from pymc_trees.core.histograms.cache import fill_root, forget_tables
from pymc_trees.core.leaves.contract import log_marginal
from pymc_trees.core.priors.contract import survey
from pymc_trees.core.samplers.particles.growth import CEASED, FULL, grow_particle, is_waiting
from pymc_trees.core.samplers.particles.particles import rearrange, start_particle
from pymc_trees.core.samplers.particles.proposals import OPTIMAL
from pymc_trees.core.samplers.particles.weights import effective_size, normalise
from pymc_trees.core.samplers.smc.ancestors import draw_ancestors
from pymc_trees.core.samplers.smc.expansion import last_place

DONE, UNFINISHED, LOST = 1, 2, 3
"""How a run ended: trees complete, out of stages, or no weight left; or `FULL`, or `CEASED`."""


class Stages(NamedTuple):
    """What each stage leaves behind; S = ``max_stages``."""

    ess: np.ndarray
    """(S,) float64: effective number of particles, before any resampling."""
    resampled: np.ndarray
    """(S,) bool."""


def make_stages(max_stages: int) -> Stages:
    """Room for some stages."""
    return Stages(np.full(max_stages, np.nan), np.zeros(max_stages, dtype=np.bool_))


@njit(cache=True, nogil=True)
def top_down_smc(
    rng,
    trees,
    design,
    bins,
    prior,
    leaf,
    proposal,
    expansion,
    scheme,
    threshold,
    particles,
    look,
    root_stats,
    spare,
    stages,
    weights,
):
    """Grow all particles from the root to complete trees.

    Parameters
    ----------
    trees : Trees
        Not read: there is no reference.
    proposal, expansion, scheme : int
        Indices in `proposals.PROPOSALS`, `expansion.EXPANSIONS` and `ancestors.SCHEMES`.
    threshold : float
        Share of C; particles are resampled when their effective number is below ``threshold * C``.
    look : LookAhead
        Of all columns.
    root_stats : (D,) float64
        Statistics of all rows.
    spare : (n,) uint32
        Room for rows.
    stages : Stages
        Overwritten.
    weights : (C,) float64
        Overwritten by the final normalised weights.

    Returns
    -------
    status : int
        `DONE`, `UNFINISHED`, `LOST`, `FULL` or `CEASED`.
    n_stages : int
        Stages run.
    log_z : float
        Log of the estimated evidence.
    """
    rng, trees, design, bins, prior, leaf, particles, look, stages = borrowed(
        (rng, trees, design, bins, prior, leaf, particles, look, stages)
    )
    n_particles = particles.log_w.size
    ancestors = np.empty(n_particles, dtype=np.int64)
    log_m = log_marginal(leaf, root_stats)
    n = particles.rows.shape[1]
    all_rows(n, spare)
    unsplittable, rate = survey(prior, design, spare, 0, n)
    for c in range(n_particles):
        start_particle(particles, c, unsplittable, root_stats, log_m)
        particles.rate[c, 0] = rate
        particles.log_w[c] = log_m  # line 4
    if proposal == OPTIMAL:
        look.root[0] = np.nan
        columns = look.columns
        fill_root(look.tables, bins, leaf, columns, look.n_columns[0], particles.rows[0])
    n_stages = 0
    log_sum = normalise(particles.log_w, weights)
    n_waiting = _count_waiting(particles)
    while n_waiting > 0:
        if n_stages == stages.ess.size:
            return UNFINISHED, n_stages, np.nan
        for c in range(n_particles):
            if not is_waiting(particles, c):
                continue
            end = last_place(particles, c, expansion)
            while is_waiting(particles, c) and particles.waiting[c] < end:
                if particles.cease[0]:
                    return CEASED, n_stages, np.nan
                status = grow_particle(  # lines 8 and 10
                    rng,
                    particles,
                    c,
                    trees,
                    design,
                    bins,
                    prior,
                    leaf,
                    proposal,
                    look,
                    spare,
                    False,
                )
                if status == FULL:
                    return FULL, n_stages, np.nan
        log_sum = normalise(particles.log_w, weights)  # lines 11 and 12
        if log_sum == -np.inf:
            return LOST, n_stages, log_sum
        ess = effective_size(weights)
        stages.ess[n_stages] = ess
        n_waiting = _count_waiting(particles)
        # Lines 13 to 15; complete trees keep their weights.
        if n_waiting > 0 and ess < threshold * n_particles:
            stages.resampled[n_stages] = True
            draw_ancestors(rng, scheme, weights, ancestors)
            rearrange(particles, ancestors)
            n_waiting = _count_waiting(particles)
            for c in range(n_particles):
                if proposal == OPTIMAL:
                    forget_tables(look.tables, c)
                particles.log_w[c] = log_sum - np.log(n_particles)
                weights[c] = 1.0 / n_particles
        n_stages += 1
    return DONE, n_stages, log_sum - np.log(n_particles)


@njit(cache=True)
def _count_waiting(particles):
    n = 0
    for c in range(particles.log_w.size):
        n += is_waiting(particles, c)
    return n
