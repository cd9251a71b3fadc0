"""Complete trees of particles as encoded values, with leaf values drawn afresh for each."""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.counts import count_forest
from pymc_trees.core.forest.trees import preorder
from pymc_trees.core.leaves.contract import draw_values
from pymc_trees.core.samplers.particle_gibbs.sweep import plant
from pymc_trees.core.value.encode import encode, fit_of


@njit(cache=True, nogil=True)
def encode_particles(
    rng, problem, particles, chosen, sizes, fingerprint, work, values, counts, inclusion
):
    """Encode one draw for each entry of ``chosen``.

    False when the pool of the problem's trees has no room, or on ``particles.cease``.

    Parameters
    ----------
    chosen : (N,) int64
        Particle of each draw.
    values : (N, rows, fields) float64
        Overwritten.
    counts : (N, 2) int64
        Overwritten with leaves and depth.
    inclusion : (N, p) int64
        Overwritten with split nodes per column.
    """
    trees, design, prior, leaf = problem
    nodes, stats = work.nodes, work.stats
    fit = np.zeros((trees.leaf_of.shape[1], trees.values.shape[1]))
    for s in range(chosen.size):
        if particles.cease[0]:
            return False
        if not plant(trees, 0, particles, chosen[s], stats, nodes):
            return False
        for k in range(preorder(trees, trees.roots[0], nodes)):
            if trees.column[nodes[k]] < 0:
                draw_values(leaf, rng, stats[nodes[k]], trees.values[nodes[k]])
        if sizes.cache_fit:
            fit_of(leaf, trees, fit)
        values[s] = encode(trees, design, prior, sizes, fingerprint, fit, nodes)
        counts[s, 0], counts[s, 1] = count_forest(trees, nodes, inclusion[s])
    return True
