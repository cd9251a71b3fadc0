"""Conditional sequential Monte Carlo on one tree (Lakshminarayanan 2015, algorithm 2).

Particle 0 replays the current tree, the reference, node by node in the same breadth-first order;
the others grow from the root. Between stages, if the weights have become uneven, all are resampled
with the reference among the possible ancestors and kept as child 0, and every weight becomes the
mean W / C. The new tree is chosen by the final weights (`choose`); `surrogate` corrects these
before.
"""

import numpy as np

from pymc_trees.core.columns.design import varying
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.moves.contract import FULL
from pymc_trees.core.samplers.particles.generation import (
    count_waiting,
    is_waiting,
    next_generation,
    start_particles,
)
from pymc_trees.core.samplers.particles.growth import CEASED, grow_particle
from pymc_trees.core.samplers.particles.optimal import choose_columns
from pymc_trees.core.samplers.particles.proposals import OPTIMAL
from pymc_trees.core.samplers.particles.resampling import resample_given_first
from pymc_trees.core.samplers.particles.weights import effective_size, forced_move, normalise


@njit(cache=True)
def grow_particles(rng, problem, tree, growth, scheme, root_stats, nodes):
    """Grow the particles to the end; 0, `FULL` or `CEASED`. Their weights are left in ``log_w``.

    Parameters
    ----------
    problem : Problem
        With the leaf model under which they grow.
    tree : int
        The current tree.
    scheme : int
        Index in `resampling.SCHEMES`.
    root_stats : (D,) float64
        Statistics of all rows.
    nodes : (N,) int32
        Buffer for the nodes of a tree.
    """
    trees, design, particles = problem.trees, problem.design, growth.particles
    n_particles = particles.log_w.size
    weights = np.empty(n_particles)
    ancestors = np.empty(n_particles, dtype=np.int64)
    root = trees.roots[tree]
    if growth.proposal == OPTIMAL:
        choose_columns(rng, growth.look, design, trees, tree, nodes)
    start_particles(problem, growth, root_stats, not varying(design).any(), trees.rate[root])
    particles.reference[0] = root
    while True:
        for c in range(n_particles):
            if is_waiting(particles, c):
                if particles.cease[0]:
                    return CEASED
                if grow_particle(rng, problem, growth, c, c == 0) == FULL:
                    return FULL
        log_sum = normalise(particles.log_w, weights)
        if count_waiting(particles) == 0:
            return 0
        if effective_size(weights) < 0.5 * n_particles:
            resample_given_first(rng, scheme, weights, ancestors)
            next_generation(growth, ancestors, log_sum)


@njit(cache=True)
def choose(rng, log_w):
    """Particle chosen by its weight (0: the tree stays), and the effective number of particles."""
    weights = np.empty(log_w.size)
    normalise(log_w, weights)
    return forced_move(rng, weights), effective_size(weights)
