"""Top-down sequential Monte Carlo for one tree (Lakshminarayanan thesis, algorithm 3.1).

All particles grow from the root. After each stage, if the weights have become uneven, they are
resampled and every weight becomes the mean W / C. With W the sum of the final weights, W / C is an
unbiased estimate of the evidence, and weighted averages over the particles times W / C are unbiased
estimates of integrals under the unnormalised posterior.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.forest.trees import all_rows, count_forest, preorder, reset_tree
from pymc_trees.core.leaves.contract import draw_values, n_stats
from pymc_trees.core.moves.contract import FULL
from pymc_trees.core.order.directions import branches_of, copy_statistics, order_leaves
from pymc_trees.core.order.monotone import new_values
from pymc_trees.core.priors.contract import node_summary
from pymc_trees.core.samplers.growth import (
    INTERRUPTED,
    count_incomplete,
    grow_particle,
    is_incomplete,
    next_generation,
    start_particles,
)
from pymc_trees.core.samplers.particles import (
    draw_ancestors,
    effective_size,
    normalise,
    write_tree,
)
from pymc_trees.core.samplers.prior_draw import draw_tree
from pymc_trees.core.value.encode import encode

# ------ Which nodes of a particle one stage of top-down SMC expands (Lakshminarayanan thesis, 3.3)
#
# The rule is a function of the partial tree and the data alone, so a tree is reached along one
# path only (3.4.1.1).
#
# node
#     The oldest waiting node: breadth first.
# lowest
#     The node of the lowest marginal likelihood; the oldest of several.
# layer
#     All waiting nodes.


NODE, LOWEST, LAYER = 0, 1, 2
EXPANSIONS = ("node", "lowest", "layer")


@njit(cache=True)
def stage_end(particles, c, expansion):
    """Move the nodes of the next stage to the front of a particle's queue; return their end."""
    first, n_nodes = particles.queue_head[c], particles.n_nodes[c]
    if expansion == LAYER:
        return n_nodes
    if expansion == LOWEST:
        queue, unsplittable, log_m = particles.queue, particles.unsplittable, particles.log_m
        lowest = first
        for position in range(first + 1, n_nodes):
            node = queue[c, position]
            if not unsplittable[c, node] and log_m[c, node] < log_m[c, queue[c, lowest]]:
                lowest = position
        chosen = queue[c, lowest]
        for position in range(lowest, first, -1):  # the others stay in order of age
            queue[c, position] = queue[c, position - 1]
        queue[c, first] = chosen
    return first + 1


# --------------------------------------------------------------------------------------------------


DONE, UNFINISHED, DEGENERATE = 1, 2, 3
"""Outcome of a run: complete trees, out of stages, all weights 0; or `FULL`, `INTERRUPTED`."""


@by_pointer
class Stages(NamedTuple):
    """Records of each stage; S = ``max_stages``."""

    ess: np.ndarray
    """(S,) float64: effective number of particles, before any resampling."""
    resampled: np.ndarray
    """(S,) bool."""


def make_stages(max_stages: int) -> Stages:
    """Records of up to ``max_stages``."""
    return Stages(np.full(max_stages, np.nan), np.zeros(max_stages, dtype=np.bool_))


@by_pointer
class Schedule(NamedTuple):
    """When nodes are expanded and particles resampled."""

    expansion: int
    """Index in `EXPANSIONS`."""
    scheme: int
    """Index in `resampling.SCHEMES`."""
    threshold: float
    """Share of C; particles are resampled when their effective number is below
    ``threshold * C``."""


@njit(cache=True, nogil=True)
def top_down_smc(rng, problem, growth, schedule, root_stats, stages, weights):
    """Grow all particles from the root to complete trees.

    Parameters
    ----------
    problem : Problem
        Its trees are not read: there is no reference.
    growth : Growth
        All columns are candidates.
    root_stats : (D,) float64
        Statistics of all rows.
    stages : Stages
        Overwritten.
    weights : (C,) float64
        Overwritten by the final normalised weights.

    Returns
    -------
    status : int
        `DONE`, `UNFINISHED`, `DEGENERATE`, `FULL` or `INTERRUPTED`.
    n_stages : int
        Stages run.
    log_z : float
        Log of the estimated evidence.
    """
    particles = growth.particles
    n_particles = particles.log_w.size
    ancestors = np.empty(n_particles, dtype=np.int64)
    n = all_rows(growth.buffer.size, growth.buffer)
    unsplittable, rate = node_summary(problem.prior, problem.design, growth.buffer, 0, n)
    particles.log_w[:] = start_particles(problem, growth, root_stats, unsplittable, rate)  # line 4
    n_stages = 0
    log_sum = normalise(particles.log_w, weights)
    n_waiting = count_incomplete(particles)
    while n_waiting > 0:
        if n_stages == stages.ess.size:
            return UNFINISHED, n_stages, np.nan
        for c in range(n_particles):
            if not is_incomplete(particles, c):
                continue
            end = stage_end(particles, c, schedule.expansion)
            while is_incomplete(particles, c) and particles.queue_head[c] < end:
                if particles.stop_flag[0]:
                    return INTERRUPTED, n_stages, np.nan
                if grow_particle(rng, problem, growth, c, False) == FULL:  # lines 8 and 10
                    return FULL, n_stages, np.nan
        log_sum = normalise(particles.log_w, weights)  # lines 11 and 12
        if log_sum == -np.inf:
            return DEGENERATE, n_stages, log_sum
        ess = effective_size(weights)
        stages.ess[n_stages] = ess
        n_waiting = count_incomplete(particles)
        # Lines 13 to 15; complete trees keep their weights.
        if n_waiting > 0 and ess < schedule.threshold * n_particles:
            stages.resampled[n_stages] = True
            draw_ancestors(rng, schedule.scheme, weights, ancestors)
            next_generation(growth, ancestors, log_sum)
            n_waiting = count_incomplete(particles)
            weights[:] = 1.0 / n_particles
        n_stages += 1
    return DONE, n_stages, log_sum - np.log(n_particles)


# ------------------- Complete trees of particles as encoded values, with leaf values drawn for each


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
        if not write_tree(trees, 0, particles, chosen[s], stats, nodes):
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
# divided by the probability of the order under p0, which `p_in_order` estimates in the same
# way, without data.


@njit(cache=True)
def draw_in_order(rng, leaf, trees, order, stats):
    """Draw the values of tree 0 within the order; log of their weight."""
    new = order.new
    order_leaves(new, branches_of(order, trees), order.directions, trees.roots[0], order.stack)
    copy_statistics(new, stats)
    order.fixed[: new.n[0]] = False
    log_weight = new_values(leaf, rng, order)
    for k in range(new.n[0]):
        trees.values[new.node[k], 0] = new.value[k]
    return log_weight


@njit(cache=True, nogil=True)
def encode_in_order(rng, problem, particles, order, sizes, fingerprint, draws, log_weights):
    """Encode each particle once, with values in order, and write the logs of their weights.

    False if a tree does not fit the pool of ``problem``, or on ``particles.stop_flag``. Parameters
    are those of `encode_particles`.
    """
    trees, leaf = problem.trees, problem.leaf
    max_nodes = trees.column.size
    nodes, stats = np.zeros(max_nodes, dtype=np.int32), np.zeros((max_nodes, n_stats(leaf)))
    for c in range(log_weights.size):
        if particles.stop_flag[0]:
            return False
        if not write_tree(trees, 0, particles, c, stats, nodes):
            return False
        log_weights[c] = draw_in_order(rng, leaf, trees, order, stats)
        write_draw(problem, sizes, fingerprint, nodes, draws, c)
    return True


@njit(cache=True)
def p_in_order(rng, problem, order, weights):
    """Draw trees from p0 and write their weights; False if one does not fit."""
    trees, design, prior, leaf = problem.trees, problem.design, problem.prior, problem.leaf
    n, max_nodes = trees.leaf_of.shape[1], trees.column.size
    nodes, no_stats = np.zeros(max_nodes, dtype=np.int32), np.zeros((max_nodes, n_stats(leaf)))
    rows, buffer = np.empty(n, dtype=np.uint32), np.empty(n, dtype=np.uint32)
    for s in range(weights.size):
        if not draw_tree(rng, trees, 0, design, prior, rows, buffer):
            return False
        weights[s] = np.exp(draw_in_order(rng, leaf, trees, order, no_stats))
        reset_tree(trees, 0, nodes)
    return True
