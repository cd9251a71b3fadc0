"""One backfitting sweep of particle Gibbs: trees by conditional SMC, then their leaf values."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.forest.trees import preorder
from pymc_trees.core.leaves.contract import next_tree
from pymc_trees.core.leaves.path import write_paths
from pymc_trees.core.moves.contract import FULL
from pymc_trees.core.order.contract import draw_ordered, note_tree, settle
from pymc_trees.core.priors.contract import renew_times
from pymc_trees.core.samplers.particle_gibbs.conditional_smc import choose, grow_particles
from pymc_trees.core.samplers.particle_gibbs.surrogate import correct_weights, start_growth
from pymc_trees.core.samplers.particles.growth import CEASED
from pymc_trees.core.samplers.particles.planting import plant


@by_pointer
class Batch(NamedTuple):
    """Which trees a sweep visits."""

    first: int
    n_updated: int
    """Number of trees, from the first on; the last tree is followed by tree 0."""
    tuning: bool
    """Whether a tree stays as it is when a new one finds no room: far from the posterior, on many
    rows, one tree alone would explain nearly everything and be huge."""


@njit(cache=True, nogil=True)
def particle_sweep(rng, problem, grown, surrogate, growth, scheme, work, batch, outcome):
    """Update a batch of trees; False when the forest outgrew its pool, or on ``particles.cease``.

    Parameters
    ----------
    grown : Problem
        The same forest under the leaf model under which particles grow: the problem itself, or with
        the surrogate for a leaf.
    surrogate : NormalData, GaussianVector or None
        Arrays for Gaussian rows, with the prior of a leaf, if leaf values do not integrate out.
    growth : Growth
        Particles; the first replays the current tree.
    scheme : int
        Index in `resampling.SCHEMES`.
    batch : Batch
        The trees.
    outcome : (2,) float64
        Number of trees replaced, and sum of the effective numbers of particles; incremented.
    """
    trees, design, prior, leaf = problem.trees, problem.design, problem.prior, problem.leaf
    particles, nodes, stats, roots = growth.particles, work.nodes, work.stats, trees.roots
    root_stats = np.zeros(particles.stats.shape[2])
    old = -1
    for step in range(batch.n_updated):
        t = (batch.first + step) % roots.size
        n_nodes = preorder(trees, roots[t], nodes)
        next_tree(leaf, trees, old, t, nodes, n_nodes, stats)
        write_paths(leaf, design, trees, nodes, n_nodes, stats)
        note_tree(work.order, problem, t, n_nodes, work)
        start_growth(rng, problem, surrogate, work, n_nodes, root_stats)
        status = grow_particles(rng, grown, t, growth, scheme, root_stats, nodes)
        if status == CEASED:
            return False
        chosen, ess = 0, 1.0
        if status != FULL:
            correct_weights(rng, problem, surrogate, particles, work, n_nodes)
            chosen, ess = choose(rng, particles.log_w)
        if status == FULL or particles.n_nodes[chosen] - n_nodes > trees.n_free[0]:
            if not batch.tuning:
                return False
            chosen = 0
        outcome[1] += ess
        if chosen > 0:
            plant(trees, t, particles, chosen, stats, nodes)
            work.is_known[roots[t]] = False
            if settle(work.order, rng, problem, t, work, False):
                outcome[0] += 1.0
        n_nodes = preorder(trees, roots[t], nodes)
        draw_ordered(work.order, rng, problem, t, n_nodes, work)
        old = t
    if old >= 0:
        next_tree(leaf, trees, old, -1, nodes, 0, stats)
    renew_times(rng, prior, trees, nodes)
    return True
