"""Complete trees of particles as encoded values, with new leaf values for each."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.forest.edit import reset_tree
from pymc_trees.core.forest.trees import count_forest, preorder
from pymc_trees.core.leaves.contract import draw_values, n_stats
from pymc_trees.core.order.directions import arrange, branches_of, take_statistics
from pymc_trees.core.order.monotone import new_values
from pymc_trees.core.priors.draw import draw_tree
from pymc_trees.core.samplers.particles import plant
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

    False if a tree does not fit the pool of ``problem``, or on ``particles.stop_flag``.

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
        if particles.stop_flag[0]:
            return False
        if not plant(trees, 0, particles, chosen[s], stats, nodes):
            return False
        for k in range(preorder(trees, trees.roots[0], nodes)):
            if trees.column[nodes[k]] < 0:
                draw_values(leaf, rng, stats[nodes[k]], trees.values[nodes[k]])
        write_draw(problem, sizes, fingerprint, nodes, draws, s)
    return True


# -------- Complete trees whose leaf values must be in order: an additional factor of their weights
#
# Particles grow under the prior p0 without an order. The values of a complete tree are drawn
# within the order, lowest first, and have the weight ``W = prod_k Z_k`` of `order.monotone`,
# whose mean given the tree is the posterior probability of the order: multiplied by it, the
# particles represent ``p0(T) p0(mu | T) 1[in order] p(y | T, mu)``. The evidence is this integral
# divided by the probability of the order under p0, which `share_in_order` estimates in the same
# way, without data.


@njit(cache=True)
def draw_in_order(rng, leaf, trees, order, stats):
    """Draw the values of tree 0 within the order; log of their weight."""
    now = order.now
    arrange(now, branches_of(order, trees), order.directions, trees.roots[0], order.stack)
    take_statistics(now, stats)
    order.known[: now.n[0]] = False
    log_weight = new_values(leaf, rng, order)
    for k in range(now.n[0]):
        trees.values[now.node[k], 0] = now.value[k]
    return log_weight


@njit(cache=True, nogil=True)
def encode_in_order(rng, problem, particles, order, sizes, fingerprint, draws, log_weights):
    """Encode each particle once, with values in order, and write the logs of their weights.

    False if a tree does not fit the pool of ``problem``, or on ``particles.stop_flag``. Parameters
    are those of `draws.encode_particles`.
    """
    trees, leaf = problem.trees, problem.leaf
    max_nodes = trees.column.size
    nodes, stats = np.zeros(max_nodes, dtype=np.int32), np.zeros((max_nodes, n_stats(leaf)))
    for c in range(log_weights.size):
        if particles.stop_flag[0]:
            return False
        if not plant(trees, 0, particles, c, stats, nodes):
            return False
        log_weights[c] = draw_in_order(rng, leaf, trees, order, stats)
        write_draw(problem, sizes, fingerprint, nodes, draws, c)
    return True


@njit(cache=True)
def share_in_order(rng, problem, order, weights):
    """Draw trees from p0 and write their weights; False if one does not fit."""
    trees, design, prior, leaf = problem.trees, problem.design, problem.prior, problem.leaf
    n, max_nodes = trees.leaf_of.shape[1], trees.column.size
    nodes, nothing = np.zeros(max_nodes, dtype=np.int32), np.zeros((max_nodes, n_stats(leaf)))
    rows, spare = np.empty(n, dtype=np.uint32), np.empty(n, dtype=np.uint32)
    for s in range(weights.size):
        if not draw_tree(rng, trees, 0, design, prior, rows, spare):
            return False
        weights[s] = np.exp(draw_in_order(rng, leaf, trees, order, nothing))
        reset_tree(trees, 0, nodes)
    return True
