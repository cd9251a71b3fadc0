"""One change of one soft tree, accepted given its rows with leaf values integrated out.

A draft differs from the current tree below one node, and the leaves there are contiguous in
preorder. Only their weights, and their rows and columns of G and entries of b (`rows`), must be
computed: for grow and prune, one pass over the rows for each leaf.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.random import accepts, draw_by_weight, pick
from pymc_trees.core.soft_forest.prior import (
    SoftPrior,
    draw_bandwidth,
    draw_column,
    draw_cut,
    log_cuts,
    log_split_ratio,
)
from pymc_trees.core.soft_forest.rows import (
    dot,
    fill_gram,
    log_marginal,
    weigh_row,
    with_capacity,
)
from pymc_trees.core.soft_forest.trees import (
    SoftTrees,
    has_two_leaves,
    leaf_weights,
    read_links,
    subtree_end,
)

# ----------------------------------------------------------- Proposals of a change of one soft tree
#
# Each writes a draft of the tree and returns where it differs, its bandwidth, and
#
#     log_ratio = log p(T') q(T | T') - log p(T) q(T' | T),
#
# p being the prior of rules and shapes; a draft is accepted with probability ``min(1,
# exp(log_ratio) m(T') / m(T))``, m the marginal likelihood (`rows`).


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


# -------------------------------------------------------------------------------------------------


FULL = -1
"""Outcome of a move that exceeds the capacity of the forest."""


@by_pointer
class SoftProblem(NamedTuple):
    """A forest, and the model under which its trees are drawn."""

    trees: SoftTrees
    unit: np.ndarray
    """(p, n) training columns on the scale of `unit`."""
    hard: np.ndarray
    """(p,) bool: columns whose gates are indicators."""
    prior: SoftPrior
    max_nodes: int


@njit(cache=True)
def open_soft_tree(problem, t, work):
    """Write the weights of the leaves of a tree, and its links.

    Returns the workspace, which has room for one more leaf.
    """
    trees = problem.trees
    size, column = trees.size[t], trees.column[t]
    work = with_capacity(work, (size + 1) // 2 + 1)
    read_links(column, size, work.links)
    work.path[0, :] = 1.0
    unit, hard, phi = problem.unit, problem.hard, work.current.phi
    leaf_weights(column, trees.number[t], trees.bandwidth[t], 0, unit, hard, work.path, phi)
    return work


@njit(cache=True)
def update_gram(problem, t, rows, work):
    """Write G and b of the open tree; return its log marginal likelihood."""
    n_leaves = (problem.trees.size[t] + 1) // 2
    for i in range(rows.r.size):
        work.centred[i] = rows.r[i] - rows.mean
    fill_gram(work.current, n_leaves, rows, work.centred, work.weighed)
    return log_marginal(work.current, n_leaves, rows.sd)


@njit(cache=True)
def _evaluate_draft(problem, t, draft, rows, work):
    """Log marginal likelihood of a draft."""
    trees, current, new = problem.trees, work.current, work.draft
    start, size = work.links.leaf[draft.node], trees.size[t]
    old_leaves = (subtree_end(trees.column[t], draft.node) - draft.node + 1) // 2
    new_leaves = (subtree_end(work.column, draft.node) - draft.node + 1) // 2
    weight = work.path[0]
    if draft.node == 0:
        weight[:] = 1.0
    else:
        weight[:] = current.phi[start]
        for a in range(start + 1, start + old_leaves):
            for i in range(weight.size):
                weight[i] += current.phi[a, i]
    unit, hard, path = problem.unit, problem.hard, work.path
    leaf_weights(work.column, work.number, draft.bandwidth, draft.node, unit, hard, path, new.phi)
    shift = new_leaves - old_leaves
    n_present = (size + 1) // 2
    for a in range(n_present):  # G and b of the leaves elsewhere do not change
        if start <= a < start + old_leaves:
            continue
        new_a = a if a < start else a + shift
        new.rhs[new_a] = current.rhs[a]
        for b in range(n_present):
            if not start <= b < start + old_leaves:
                new.gram[new_a, b if b < start else b + shift] = current.gram[a, b]
    for x in range(new_leaves):
        new_a = start + x
        weigh_row(new.phi[x], rows.w, work.weighed)
        new.rhs[new_a] = dot(work.weighed, work.centred)
        for y in range(x + 1):
            new.gram[new_a, start + y] = new.gram[start + y, new_a] = dot(work.weighed, new.phi[y])
        for b in range(n_present):
            if not start <= b < start + old_leaves:
                new_b = b if b < start else b + shift
                new.gram[new_a, new_b] = new.gram[new_b, new_a] = dot(work.weighed, current.phi[b])
    return log_marginal(new, n_present + shift, rows.sd)


@njit(cache=True)
def _accept_draft(problem, t, draft, work):
    """Make the draft the current tree."""
    trees, current, new = problem.trees, work.current, work.draft
    column, number, size = trees.column[t], trees.number[t], trees.size[t]
    start = work.links.leaf[draft.node]
    old_leaves = (subtree_end(column, draft.node) - draft.node + 1) // 2
    new_leaves = (subtree_end(work.column, draft.node) - draft.node + 1) // 2
    n_present, n_new = (size + 1) // 2, (draft.size + 1) // 2
    first, last = start + old_leaves, n_present
    if new_leaves > old_leaves:
        for a in range(last - 1, first - 1, -1):
            current.phi[a + new_leaves - old_leaves] = current.phi[a]
    elif new_leaves < old_leaves:
        for a in range(first, last):
            current.phi[a + new_leaves - old_leaves] = current.phi[a]
    for x in range(new_leaves):
        current.phi[start + x] = new.phi[x]
    for a in range(n_new):
        current.rhs[a] = new.rhs[a]
        for b in range(n_new):
            current.gram[a, b] = new.gram[a, b]
    for k in range(draft.size):
        column[k], number[k] = work.column[k], work.number[k]
    trees.size[t], trees.bandwidth[t] = draft.size, draft.bandwidth
    read_links(column, draft.size, work.links)


@njit(cache=True)
def soft_move(rng, problem, t, rows, weights, log_now, room, work):
    """One Metropolis-Hastings move of the open tree.

    Parameters
    ----------
    rows : SoftRows
        Data of the tree.
    weights : (5,) float64
        Of the kinds of `proposals.MOVES`.
    log_now : float
        Log marginal likelihood of the current tree.
    room : int
        Number of nodes that can be added.

    Returns
    -------
    kind : int
    outcome : int
        1 if accepted, 0 if not, or `FULL`.
    log_now : float
        Of the tree after the move.
    work : SoftWork
        With room for one more leaf.
    """
    trees = problem.trees
    size, bandwidth = trees.size[t], trees.bandwidth[t]
    column, number = trees.column[t], trees.number[t]
    kind = draw_kind(rng, weights, size == 1)
    draft = propose(rng, kind, column, number, size, bandwidth, problem.prior, weights, work)
    if draft.log_ratio == -np.inf:
        return kind, 0, log_now, work
    log_new = log_now
    if size > 1 or draft.size > 1:
        log_new = _evaluate_draft(problem, t, draft, rows, work)
    if not accepts(rng, draft.log_ratio + log_new - log_now):
        return kind, 0, log_now, work
    if draft.size - size > room:
        return kind, FULL, log_now, work
    if draft.size == 1 and size == 1:
        trees.bandwidth[t] = draft.bandwidth
    else:
        _accept_draft(problem, t, draft, work)
    return kind, 1, log_new, with_capacity(work, (draft.size + 1) // 2 + 1)
