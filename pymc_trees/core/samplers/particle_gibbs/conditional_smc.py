"""Conditional sequential Monte Carlo on one tree (Lakshminarayanan 2015, algorithm 2).

Particle 0 replays the current tree, the reference, node by node in the same breadth-first order;
the others grow from the root. Between stages, when the weights have become uneven, all are
resampled with the reference among the possible ancestors and kept as child 0, and every weight
becomes the mean W / C. The new tree is chosen by the final weights (`choose`); `surrogate_sweep`
corrects these before.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.histograms.cache import fill_root, forget_tables
from pymc_trees.core.leaves.contract import log_marginal
from pymc_trees.core.samplers.particles.growth import CEASED, FULL, grow_particle, is_waiting
from pymc_trees.core.samplers.particles.optimal import choose_columns
from pymc_trees.core.samplers.particles.particles import rearrange, start_particle
from pymc_trees.core.samplers.particles.proposals import OPTIMAL
from pymc_trees.core.samplers.particles.resampling import resample_given_first
from pymc_trees.core.samplers.particles.weights import effective_size, forced_move, normalise


@njit(cache=True)
def grow_particles(
    rng,
    trees,
    tree,
    design,
    bins,
    prior,
    leaf,
    proposal,
    scheme,
    particles,
    look,
    root_stats,
    nodes,
    spare,
):
    """Grow the particles to the end; 0, `FULL` or `CEASED`. Their weights are left in ``log_w``.

    Parameters
    ----------
    proposal, scheme : int
        Indices in `proposals.PROPOSALS` and `resampling.SCHEMES`.
    root_stats : (D,) float64
        Statistics of all rows.
    nodes, spare : array
        Room for the nodes of a tree, and for rows.
    """
    n_particles = particles.log_w.size
    weights = np.empty(n_particles)
    ancestors = np.empty(n_particles, dtype=np.int64)
    log_m = log_marginal(leaf, root_stats)
    unsplittable = not design.varies.any()
    for c in range(n_particles):
        start_particle(particles, c, unsplittable, root_stats, log_m)
        particles.rate[c, 0] = trees.rate[trees.roots[tree]]
    particles.reference[0] = trees.roots[tree]
    if proposal == OPTIMAL:
        choose_columns(rng, look, design, trees, tree, nodes)
        look.root[0] = np.nan
        fill_root(look.tables, bins, leaf, look.columns, look.n_columns[0], particles.rows[0])
    while True:
        for c in range(n_particles):
            if is_waiting(particles, c):
                if particles.cease[0]:
                    return CEASED
                status = grow_particle(
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
                    c == 0,
                )
                if status == FULL:
                    return FULL
        log_sum = normalise(particles.log_w, weights)
        finished = True
        for c in range(n_particles):
            finished &= not is_waiting(particles, c)
        if finished:
            return 0
        if effective_size(weights) < 0.5 * n_particles:
            resample_given_first(rng, scheme, weights, ancestors)
            rearrange(particles, ancestors)
            for c in range(n_particles):
                forget_tables(look.tables, c)
            for c in range(n_particles):
                particles.log_w[c] = log_sum - np.log(n_particles)


@njit(cache=True)
def choose(rng, log_w):
    """Particle chosen by its weight (0: the tree stays), and the effective number of particles."""
    weights = np.empty(log_w.size)
    normalise(log_w, weights)
    return forced_move(rng, weights), effective_size(weights)
