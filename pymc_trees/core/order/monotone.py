"""Trees that are monotone in some columns: the order of `boxes`.

If leaf values integrate out, a step from T to T' is reversible with respect to p0(T | y). Given
p0(mu | T, y), a product over leaves, values of new leaves are drawn one after another, lowest
first, each from its own conditional between the bounds set by the values known so far. The density
is

    q(mu | T) = prod_k p0(mu_k | y) 1[mu_k within its bounds] / Z_k,

Z_k the probability that p0(. | y) gives to the bounds. What is left of the Metropolis-Hastings
ratio is ``prod_k Z'_k / prod_k Z_k``, the second product over the leaves that are gone, by the same
rule. Leaves whose rows are the same in T and in T' keep their values, which are known from the
start, in either direction: which they are depends on T and T' alone.

The values of a tree that stays are drawn by such a step for all leaves, and then one by one given
the others.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register
from pymc_trees.core.compile.lanes import copy_numbers, lowest_bit
from pymc_trees.core.forest.trees import preorder
from pymc_trees.core.forest.undo import keep_tree, restore_tree
from pymc_trees.core.leaves.contract import draw_leaves
from pymc_trees.core.leaves.latent.augmentations import draw_truncated, log_between
from pymc_trees.core.leaves.nonconjugate.joint import JointData
from pymc_trees.core.leaves.nonconjugate.joint import see_values as see_jointly
from pymc_trees.core.leaves.nonconjugate.rowwise import RowwiseData
from pymc_trees.core.leaves.nonconjugate.rowwise import see_values as see_by_row
from pymc_trees.core.leaves.normal import NormalData, conditional
from pymc_trees.core.order.directions import (
    Monotone,
    arrange,
    bounds_of,
    branches_of,
    copy_leaves,
    hold_order,
    in_order,
    known_in_order,
    take_statistics,
)
from pymc_trees.core.random import accepts


@generic("leaf")
def new_values(leaf, rng, order):
    """Draw or look up unknown values of the leaves ``order.now``; log of their weight."""


@generic("leaf")
def old_weight(leaf, order):
    """Log of the weight of the values of the leaves ``order.was`` that are not known."""


@generic("leaf")
def draw_within(leaf, rng, order, problem, tree, n_nodes, work):
    """`draw_ordered` of a leaf model."""


@njit(cache=True)
def _note_tree(order, problem, tree, n_nodes, work):
    trees, was = problem.trees, order.was
    keep_tree(trees, tree, work.nodes, n_nodes, work.sets, 1, order.kept)
    arrange(was, branches_of(order, trees), order.directions, trees.roots[tree], order.stack)
    take_statistics(was, work.stats)
    for k in range(was.n[0]):
        was.value[k] = trees.values[was.node[k], 0]


@njit(cache=True)
def match_rows(order, leaf_of, sets, nodes_then, sets_then):
    """Write which new leaves have the rows of a leaf as noted, and which of these; give values.

    ``sets`` has the rows of each node now, ``sets_then`` those of ``nodes_then``, in preorder.
    """
    was, now = order.was, order.now
    for k in range(nodes_then.size):
        order.stack[nodes_then[k]] = k
    for a in range(was.n[0]):
        order.place[was.node[a]] = a
        order.kept_value[a] = False
    for k in range(now.n[0]):
        rows = sets[now.node[k]]
        w = 0
        while rows[w] == np.uint64(0):
            w += 1
        then = leaf_of[(w << 6) + lowest_bit(rows[w])]
        rows_then = sets_then[order.stack[then]]
        order.known[k] = True
        for v in range(rows.size):
            if rows[v] != rows_then[v]:
                order.known[k] = False
                break
        if order.known[k]:
            place = order.place[then]
            order.kept_value[place] = True
            now.value[k] = was.value[place]


@njit(cache=True)
def _accept_ordered(order, rng, problem, tree, work, by_rows):
    trees, leaf, kept, was, now = problem.trees, problem.leaf, order.kept, order.was, order.now
    n_then = 2 * was.n[0] - 1
    arrange(now, branches_of(order, trees), order.directions, trees.roots[tree], order.stack)
    take_statistics(now, work.stats)
    if by_rows:
        match_rows(order, kept.leaf_of, work.sets, kept.nodes[:n_then], kept.sets)
    else:
        order.known[: now.n[0]] = False
        order.kept_value[: was.n[0]] = False
    log_new = -np.inf
    if known_in_order(now, order.known):
        log_new = new_values(leaf, rng, order)
    if log_new > -np.inf:
        for a in range(was.n[0]):
            order.known[a] = order.kept_value[a]
        if accepts(rng, log_new - old_weight(leaf, order)):
            copy_leaves(now, was)
            n_nodes = preorder(trees, trees.roots[tree], work.nodes)
            keep_tree(trees, tree, work.nodes, n_nodes, work.sets, 1, kept)
            return True
    restore_tree(trees, tree, n_then, work.sets, 1, kept)
    for a in range(was.n[0]):
        copy_numbers(was.stats[a], work.stats[was.node[a]])
    return False


@njit(cache=True)
def standard_bounds(leaf, stats, low, high):
    """Mean and square root of the precision of a leaf value given its rows; standardised bounds."""
    mean, precision = conditional(leaf, stats)
    root = np.sqrt(precision)
    return mean, root, (low - mean) * root, (high - mean) * root


@njit(cache=True)
def log_weight(leaf, leaves, known):
    """Log of the product of Z over the unknown leaves, each known afterwards."""
    total = 0.0
    for k in range(leaves.n[0]):
        if not known[k]:
            low, high = bounds_of(leaves, known, k)
            _, _, below, above = standard_bounds(leaf, leaves.stats[k], low, high)
            total += log_between(below, above)
            known[k] = True
    return total


@njit(cache=True)
def draw_between(leaf, rng, stats, low, high):
    """Value of a leaf from its conditional between two bounds, and the log of Z."""
    mean, root, below, above = standard_bounds(leaf, stats, low, high)
    if not low < high:
        return mean, -np.inf
    log_z = log_between(below, above)
    if not log_z > -np.inf:
        return mean, -np.inf
    value = mean + draw_truncated(rng, below, above) / root
    return min(max(value, low), high), log_z  # rounding must not break the order


@njit(cache=True)
def _new_normal_values(leaf, rng, order):
    now, known, total = order.now, order.known, 0.0
    for k in range(now.n[0]):
        if not known[k]:
            low, high = bounds_of(now, known, k)
            now.value[k], log_z = draw_between(leaf, rng, now.stats[k], low, high)
            total += log_z
            if total == -np.inf:
                return total
            known[k] = True
    return total


@njit(cache=True)
def _old_normal_weight(leaf, order):
    return log_weight(leaf, order.was, order.known)


@njit(cache=True)
def _draw_within(leaf, rng, order, problem, tree, n_nodes, work):
    was, now, known, values = order.was, order.now, order.known, problem.trees.values
    n = was.n[0]
    if n > 1:
        copy_leaves(was, now)
        known[:n] = False
        log_new = _new_normal_values(leaf, rng, order)
        known[:n] = False
        if log_new > -np.inf and accepts(rng, log_new - log_weight(leaf, was, known)):
            copy_leaves(now, was)
    known[:n] = True
    for k in range(n):
        low, high = bounds_of(was, known, k)
        value, log_z = draw_between(leaf, rng, was.stats[k], low, high)
        if log_z > -np.inf:
            was.value[k] = value
        values[was.node[k], 0] = was.value[k]


@njit(cache=True)
def _draw_ordered(order, rng, problem, tree, n_nodes, work):
    draw_within(problem.leaf, rng, order, problem, tree, n_nodes, work)


@njit(cache=True)
def _is_ordered(order, trees, tree):
    return hold_order(order, trees, tree, order.now, order.stack)


register(
    Monotone,
    snapshot_tree=_note_tree,
    accept_ordered=_accept_ordered,
    draw_ordered=_draw_ordered,
    is_ordered=_is_ordered,
)
register(
    NormalData,
    new_values=_new_normal_values,
    old_weight=_old_normal_weight,
    draw_within=_draw_within,
)


# -------------- Orders when leaf values are not integrated out: a tree has values, in order or not
#
# The statistics of a leaf hold the value drawn for it. A step on (T, mu) under the likelihood
# itself is reversible, so it is accepted if it stays in order.


@generic("leaf")
def see_values(leaf, column, values, leaf_of, nodes, n_nodes):
    """Evaluate the likelihood at the values of the leaves of the open tree."""


@njit(cache=True)
def _new_values(leaf, rng, order):
    now = order.now
    for k in range(now.n[0]):
        now.value[k] = now.stats[k, 1]
    return 0.0 if in_order(now) else -np.inf


@njit(cache=True)
def _old_weight(leaf, order):
    return 0.0


@njit(cache=True)
def _draw_values_within(leaf, rng, order, problem, tree, n_nodes, work):
    trees, was, now, stats = problem.trees, order.was, order.now, work.stats
    column, values, leaf_of, nodes = trees.column, trees.values, trees.leaf_of[tree], work.nodes
    draw_leaves(leaf, rng, column, values, leaf_of, nodes, n_nodes, stats)
    copy_leaves(was, now)
    for k in range(now.n[0]):
        now.value[k] = values[now.node[k], 0]
    if not in_order(now):
        for k in range(was.n[0]):
            values[was.node[k], 0] = was.value[k]
            copy_numbers(was.stats[k], stats[was.node[k]])
        see_values(leaf, column, values, leaf_of, nodes, n_nodes)


for kind, see in ((RowwiseData, see_by_row), (JointData, see_jointly)):
    register(
        kind,
        see_values=see,
        new_values=_new_values,
        old_weight=_old_weight,
        draw_within=_draw_values_within,
    )
