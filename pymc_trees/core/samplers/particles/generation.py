"""All particles together: start, number of incomplete ones, and the next generation."""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.histograms.cache import fill_root, forget
from pymc_trees.core.leaves.contract import log_marginal
from pymc_trees.core.samplers.particles.optimal import columns_of
from pymc_trees.core.samplers.particles.particles import rearrange, start_particle
from pymc_trees.core.samplers.particles.proposals import OPTIMAL


@njit(cache=True)
def start_particles(problem, growth, root_stats, unsplittable, rate):
    """Make every particle a root with all rows, of known statistics and prior terms.

    The log marginal likelihood of the root; weights are 1.
    """
    particles, look = growth.particles, growth.look
    log_m = log_marginal(problem.leaf, root_stats)
    for c in range(particles.log_w.size):
        start_particle(particles, c, unsplittable, root_stats, log_m)
        particles.rate[c, 0] = rate
    if growth.proposal == OPTIMAL:
        look.root[0] = np.nan
        subset, rows = columns_of(look), particles.rows[0]
        fill_root(look.histograms, growth.bins, problem.leaf, subset, rows)
    return log_m


@njit(cache=True)
def is_waiting(particles, c):
    """Whether a particle has a node to expand; nodes whose rows are all alike are skipped."""
    place, n_nodes = particles.waiting[c], particles.n_nodes[c]
    while place < n_nodes and particles.unsplittable[c, particles.queue[c, place]]:
        place += 1
    particles.waiting[c] = place
    return place < n_nodes


@njit(cache=True)
def count_waiting(particles):
    """Number of particles that are not complete."""
    n = 0
    for c in range(particles.log_w.size):
        n += is_waiting(particles, c)
    return n


@njit(cache=True)
def next_generation(growth, ancestors, log_sum):
    """Replace the particles by children of their ancestors, each of the mean weight W / C."""
    particles = growth.particles
    rearrange(particles, ancestors)
    for c in range(ancestors.size):
        if growth.proposal == OPTIMAL:
            forget(growth.look.histograms, c)
        particles.log_w[c] = log_sum - np.log(ancestors.size)
