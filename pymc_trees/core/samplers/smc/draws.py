"""Complete trees of particles as encoded values, with new leaf values for each."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.forest.counts import count_forest
from pymc_trees.core.forest.trees import preorder
from pymc_trees.core.leaves.contract import draw_values, n_stats
from pymc_trees.core.samplers.particles.planting import plant
from pymc_trees.core.value.encode import encode


@by_pointer
class Draws(NamedTuple):
    """N encoded draws of forests of p columns."""

    values: np.ndarray
    """(N, rows, fields) float64."""
    counts: np.ndarray
    """(N, 2) int64: leaves and depth."""
    inclusion: np.ndarray
    """(N, p) int64: split nodes per column."""


def make_draws(n_draws: int, sizes, p: int) -> Draws:
    """Empty draws."""
    return Draws(
        np.empty((n_draws, sizes.rows, sizes.fields)),
        np.empty((n_draws, 2), dtype=np.int64),
        np.empty((n_draws, p), dtype=np.int64),
    )


@njit(cache=True)
def write_draw(problem, sizes, fingerprint, nodes, draws, s):
    """Write the tree of a problem as draw s; ``nodes`` is overwritten."""
    trees = problem.trees
    draws.values[s] = encode(trees, problem.design, problem.prior, sizes, fingerprint, nodes)
    draws.counts[s, 0], draws.counts[s, 1] = count_forest(trees, nodes, draws.inclusion[s])


@njit(cache=True, nogil=True)
def encode_particles(rng, problem, particles, chosen, sizes, fingerprint, draws):
    """Encode one draw for each entry of ``chosen``.

    False if a tree does not fit the pool of ``problem``, or on ``particles.cease``.

    Parameters
    ----------
    chosen : (N,) int64
        Particle of each draw.
    draws : Draws
        Overwritten.
    """
    trees, leaf = problem.trees, problem.leaf
    max_nodes = trees.column.size
    nodes, stats = np.zeros(max_nodes, dtype=np.int32), np.zeros((max_nodes, n_stats(leaf)))
    for s in range(chosen.size):
        if particles.cease[0]:
            return False
        if not plant(trees, 0, particles, chosen[s], stats, nodes):
            return False
        for k in range(preorder(trees, trees.roots[0], nodes)):
            if trees.column[nodes[k]] < 0:
                draw_values(leaf, rng, stats[nodes[k]], trees.values[nodes[k]])
        write_draw(problem, sizes, fingerprint, nodes, draws, s)
    return True
