"""Proposals of a change of one soft tree.

Each writes a draft of the tree and returns where it differs, its bandwidth, and

    log_ratio = log p(T') q(T | T') - log p(T) q(T' | T),

p being the prior of rules and shapes; a draft is accepted with probability ``min(1, exp(log_ratio)
m(T') / m(T))``, m the marginal likelihood (`rows`).
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.random import draw_by_weight, pick
from pymc_trees.core.soft_forest.prior import (
    draw_bandwidth,
    draw_column,
    draw_cut,
    log_cuts,
    log_split_ratio,
)
from pymc_trees.core.soft_forest.trees import has_two_leaves, subtree_end

MOVES = ("grow", "prune", "change", "perturb", "bandwidth")
GROW, PRUNE, CHANGE, PERTURB, BANDWIDTH = range(5)


class Proposal(NamedTuple):
    """A draft, apart from its nodes."""

    node: int
    """Root of the subtree that differs."""
    size: int
    """Nodes of the draft."""
    bandwidth: float
    log_ratio: float


@njit(cache=True)
def draw_kind(rng, weights, is_stump):
    """Draw a kind of move by weight among those that the tree allows."""
    if not is_stump:
        return draw_by_weight(weights, 0, weights.size, rng.random() * weights.sum())
    point = rng.random() * (weights[GROW] + weights[BANDWIDTH])
    return GROW if point < weights[GROW] else BANDWIDTH


@njit(cache=True)
def move_probability(weights, kind, is_stump):
    """Probability of a kind of move that the tree allows."""
    return weights[kind] / (weights[GROW] + weights[BANDWIDTH] if is_stump else weights.sum())


@njit(cache=True)
def count_two_leaves(column, size):
    """Nodes that are split into two leaves."""
    count = 0
    for k in range(size):
        count += has_two_leaves(column, k)
    return count


@njit(cache=True)
def _nth_node(column, size, kind, index):
    """Node by its index among leaves (kind 0), two-leaf splits (1) or all splits (2)."""
    for k in range(size):
        if kind == 0:
            matches = column[k] < 0
        elif kind == 1:
            matches = has_two_leaves(column, k)
        else:
            matches = column[k] >= 0
        if matches:
            if index == 0:
                return k
            index -= 1
    return -1


@njit(cache=True)
def _copy(column, number, first, last, shift, work):
    for k in range(first, last):
        work.column[k + shift] = column[k]
        work.number[k + shift] = number[k]


@njit(cache=True)
def propose_grow(rng, column, number, size, bandwidth, prior, weights, work):
    """Split a uniformly chosen leaf by a rule from the prior.

    Column and cut have the same density in prior and proposal, so that

        ratio = p_d (1 - p_{d+1})^2 / (1 - p_d) * (P(prune) / two-leaf splits of T')
                / (P(grow) / leaves of T).
    """
    parent, n_leaves = work.links.parent, (size + 1) // 2
    node = _nth_node(column, size, 0, pick(rng, n_leaves))
    j = draw_column(rng, prior)
    cut = draw_cut(rng, column, number, parent, node, j)
    _copy(column, number, 0, node, 0, work)
    _copy(column, number, node + 1, size, 2, work)
    work.column[node], work.number[node] = j, cut
    work.column[node + 1 : node + 3] = -1
    ratio = log_split_ratio(prior, work.links.depth[node])
    back = move_probability(weights, PRUNE, False) / count_two_leaves(work.column, size + 2)
    ratio += math.log(back * n_leaves / move_probability(weights, GROW, size == 1))
    return Proposal(node, size + 2, bandwidth, ratio)


@njit(cache=True)
def propose_prune(rng, column, number, size, bandwidth, prior, weights, work):
    """Turn a uniformly chosen split into two leaves into a leaf: the reverse of `propose_grow`."""
    n_two, n_leaves = count_two_leaves(column, size), (size + 1) // 2
    node = _nth_node(column, size, 1, pick(rng, n_two))
    _copy(column, number, 0, node, 0, work)
    _copy(column, number, node + 3, size, -2, work)
    work.column[node], work.number[node] = -1, 0.0
    ratio = -log_split_ratio(prior, work.links.depth[node])
    back = move_probability(weights, GROW, size == 3) / (n_leaves - 1)
    ratio += math.log(back * n_two / move_probability(weights, PRUNE, False))
    return Proposal(node, size - 2, bandwidth, ratio)


@njit(cache=True)
def propose_change(rng, column, number, size, bandwidth, prior, weights, work):
    """Give a uniformly chosen split a new rule from the prior.

    Its own density cancels; the densities of the cuts below, whose bounds it sets, do not.
    """
    node = _nth_node(column, size, 2, pick(rng, size // 2))
    j = draw_column(rng, prior)
    return _with_rule(
        column,
        number,
        size,
        bandwidth,
        node,
        j,
        draw_cut(rng, column, number, work.links.parent, node, j),
        node + 1,
        work,
    )


@njit(cache=True)
def propose_perturb(rng, column, number, size, bandwidth, prior, weights, work):
    """Move the cut of a uniformly chosen split by a normal step with an sd from 0.001 to 1."""
    node = _nth_node(column, size, 2, pick(rng, size // 2))
    step = 10.0 ** (-3.0 * rng.random()) * rng.standard_normal()
    cut = number[node] + step
    return _with_rule(column, number, size, bandwidth, node, column[node], cut, node, work)


@njit(cache=True)
def _with_rule(column, number, size, bandwidth, node, j, cut, first, work):
    """Draft with another rule at a node; the ratio includes the cuts of nodes from ``first``."""
    parent, last = work.links.parent, subtree_end(column, node)
    _copy(column, number, 0, size, 0, work)
    work.column[node], work.number[node] = j, cut
    ratio = log_cuts(work.column, work.number, parent, first, last)
    if ratio > -np.inf:
        ratio -= log_cuts(column, number, parent, first, last)
    return Proposal(node, size, bandwidth, ratio)


@njit(cache=True)
def propose_bandwidth(rng, column, number, size, bandwidth, prior, weights, work):
    """Move the log of the bandwidth by a normal step with an sd from 0.06 to 2.

    The bandwidth of a stump, which does not affect the likelihood, is drawn from the prior.
    """
    _copy(column, number, 0, size, 0, work)
    if size == 1:
        return Proposal(0, size, draw_bandwidth(rng, prior), 0.0)
    step = 2.0 * 10.0 ** (-1.5 * rng.random()) * rng.standard_normal()
    new = bandwidth * math.exp(step)
    return Proposal(0, size, new, step - (new - bandwidth) / prior.bandwidth)


@njit(cache=True)
def propose(rng, kind, column, number, size, bandwidth, prior, weights, work):
    """Write a draft by a kind of move that the tree allows."""
    if kind == GROW:
        return propose_grow(rng, column, number, size, bandwidth, prior, weights, work)
    if kind == PRUNE:
        return propose_prune(rng, column, number, size, bandwidth, prior, weights, work)
    if kind == CHANGE:
        return propose_change(rng, column, number, size, bandwidth, prior, weights, work)
    if kind == PERTURB:
        return propose_perturb(rng, column, number, size, bandwidth, prior, weights, work)
    return propose_bandwidth(rng, column, number, size, bandwidth, prior, weights, work)
