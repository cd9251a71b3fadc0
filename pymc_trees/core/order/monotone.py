"""Trees that are monotone in some columns: the order of `directions`.

If leaf values integrate out, a step from T to T' is reversible with respect to p0(T | y). Given
p0(mu | T, y), a product over leaves, values of new leaves are drawn one after another, lowest
first, each from its own conditional between the bounds set by the values fixed so far. The density
is

    q(mu | T) = prod_k p0(mu_k | y) 1[mu_k within its bounds] / Z_k,

with Z_k the probability that p0(. | y) gives to the bounds. The Metropolis-Hastings ratio reduces
to ``prod_k Z'_k / prod_k Z_k``, the second product over the leaves that are gone, by the same rule.
Leaves whose rows are the same in T and in T' keep their values, which are fixed from the start, in
either direction: which they are depends on T and T' alone.

The values of a tree that stays are drawn by such a step for all leaves, and then one by one given
the others.
"""

import numpy as np

from pymc_trees.core.columns.row_set import has_row
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register
from pymc_trees.core.compile.lanes import copy_numbers, lowest_bit
from pymc_trees.core.forest.trees import preorder, restore_tree, save_tree
from pymc_trees.core.leaves.contract import draw_leaves
from pymc_trees.core.leaves.latent.augmentations import draw_truncated, log_between
from pymc_trees.core.leaves.nonconjugate.joint import JointData
from pymc_trees.core.leaves.nonconjugate.joint import evaluate_values as see_jointly
from pymc_trees.core.leaves.nonconjugate.rowwise import RowwiseData
from pymc_trees.core.leaves.nonconjugate.rowwise import evaluate_values as see_by_row
from pymc_trees.core.leaves.normal import NormalData, conditional
from pymc_trees.core.order.directions import (
    Monotone,
    bounds_of,
    branches_of,
    copy_leaves,
    copy_statistics,
    fixed_in_order,
    in_order,
    order_leaves,
    tree_in_order,
)
from pymc_trees.core.random import accepts


@generic("leaf")
def new_values(leaf, rng, order):
    """Draw or look up values of leaves ``order.new`` that are not fixed; log of their weight."""


@generic("leaf")
def old_weight(leaf, order):
    """Log of the weight of the values of the leaves ``order.old`` that are not fixed."""


@generic("leaf")
def draw_within(leaf, rng, order, problem, tree, n_nodes, work):
    """`draw_ordered` of a leaf model."""


@njit(cache=True)
def _snapshot_tree(order, problem, tree, n_nodes, work):
    trees, old = problem.trees, order.old
    save_tree(trees, tree, work.nodes, n_nodes, work.sets, 1, order.saved)
    order_leaves(old, branches_of(order, trees), order.directions, trees.roots[tree], order.stack)
    copy_statistics(old, work.stats)
    for k in range(old.n[0]):
        old.value[k] = trees.values[old.node[k], 0]


@njit(cache=True)
def old_leaf_of(order, leaf_of, old_sets, i, first_word):
    """Recorded leaf of a row, or of a reference row, which has no label."""
    if first_word == 0:
        return np.int64(leaf_of[i])
    a = 0
    while not has_row(old_sets[order.stack[order.old.node[a]]], i):
        a += 1
    return np.int64(order.old.node[a])


@njit(cache=True)
def match_rows(order, leaf_of, sets, old_nodes, old_sets, first_word):
    """Find the new leaves with the rows of a recorded leaf, mark both, and copy the values.

    ``sets`` has the rows of each node, ``old_sets`` those of ``old_nodes``, in preorder.
    """
    old, new = order.old, order.new
    for k in range(old_nodes.size):
        order.stack[old_nodes[k]] = k
    for a in range(old.n[0]):
        order.position[old.node[a]] = a
        order.in_both[a] = False
    for k in range(new.n[0]):
        rows = sets[new.node[k]]
        w = 0
        while rows[w] == np.uint64(0):
            w += 1
        i = (w << 6) + lowest_bit(rows[w])
        old_leaf = old_leaf_of(order, leaf_of, old_sets, i, first_word)
        old_rows = old_sets[order.stack[old_leaf]]
        order.fixed[k] = True
        for v in range(rows.size):
            if rows[v] != old_rows[v]:
                order.fixed[k] = False
                break
        if order.fixed[k]:
            position = order.position[old_leaf]
            order.in_both[position] = True
            new.value[k] = old.value[position]


@njit(cache=True)
def _accept_ordered(order, rng, problem, tree, work, by_rows):
    trees, leaf, saved, old, new = problem.trees, problem.leaf, order.saved, order.old, order.new
    n_old = 2 * old.n[0] - 1
    order_leaves(new, branches_of(order, trees), order.directions, trees.roots[tree], order.stack)
    copy_statistics(new, work.stats)
    if by_rows:
        first = work.index.first_word
        match_rows(order, saved.leaf_of, work.sets, saved.nodes[:n_old], saved.sets, first)
    else:
        order.fixed[: new.n[0]] = False
        order.in_both[: old.n[0]] = False
    log_new = -np.inf
    if fixed_in_order(new, order.fixed):
        log_new = new_values(leaf, rng, order)
    if log_new > -np.inf:
        for a in range(old.n[0]):
            order.fixed[a] = order.in_both[a]
        if accepts(rng, log_new - old_weight(leaf, order)):
            copy_leaves(new, old)
            n_nodes = preorder(trees, trees.roots[tree], work.nodes)
            save_tree(trees, tree, work.nodes, n_nodes, work.sets, 1, saved)
            return True
    restore_tree(trees, tree, n_old, work.sets, 1, saved)
    for a in range(old.n[0]):
        copy_numbers(old.stats[a], work.stats[old.node[a]])
    return False


@njit(cache=True)
def standard_bounds(leaf, stats, low, high):
    """Mean and square root of the precision of a leaf value given its rows; standardised bounds."""
    mean, precision = conditional(leaf, stats)
    root = np.sqrt(precision)
    return mean, root, (low - mean) * root, (high - mean) * root


@njit(cache=True)
def log_weight(leaf, leaves, fixed):
    """Log of the product of Z over the leaves that are not fixed; marks those that it counts."""
    total = 0.0
    if leaves.is_free[0]:
        return total
    for k in range(leaves.n[0]):
        if not fixed[k]:
            low, high = bounds_of(leaves, fixed, k)
            _, _, below, above = standard_bounds(leaf, leaves.stats[k], low, high)
            total += log_between(below, above)
            fixed[k] = True
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
def draw_freely(leaf, rng, leaves, fixed):
    """Draw the values of leaves that are not fixed, where none is ordered."""
    for k in range(leaves.n[0]):
        if not fixed[k]:
            mean, precision = conditional(leaf, leaves.stats[k])
            leaves.value[k] = mean + rng.standard_normal() / np.sqrt(precision)


@njit(cache=True)
def _new_normal_values(leaf, rng, order):
    new, fixed, total = order.new, order.fixed, 0.0
    if new.is_free[0]:
        draw_freely(leaf, rng, new, fixed)
        return total
    for k in range(new.n[0]):
        if not fixed[k]:
            low, high = bounds_of(new, fixed, k)
            new.value[k], log_z = draw_between(leaf, rng, new.stats[k], low, high)
            total += log_z
            if total == -np.inf:
                return total
            fixed[k] = True
    return total


@njit(cache=True)
def _old_normal_weight(leaf, order):
    return log_weight(leaf, order.old, order.fixed)


@njit(cache=True)
def _draw_within(leaf, rng, order, problem, tree, n_nodes, work):
    old, new, fixed, values = order.old, order.new, order.fixed, problem.trees.values
    n = old.n[0]
    if old.is_free[0]:
        fixed[:n] = False
        draw_freely(leaf, rng, old, fixed)
        for k in range(n):
            values[old.node[k], 0] = old.value[k]
        return
    if n > 1:
        copy_leaves(old, new)
        fixed[:n] = False
        log_new = _new_normal_values(leaf, rng, order)
        fixed[:n] = False
        if log_new > -np.inf and accepts(rng, log_new - log_weight(leaf, old, fixed)):
            copy_leaves(new, old)
    fixed[:n] = True
    for k in range(n):
        low, high = bounds_of(old, fixed, k)
        value, log_z = draw_between(leaf, rng, old.stats[k], low, high)
        if log_z > -np.inf:
            old.value[k] = value
        values[old.node[k], 0] = old.value[k]


@njit(cache=True)
def _draw_ordered(order, rng, problem, tree, n_nodes, work):
    draw_within(problem.leaf, rng, order, problem, tree, n_nodes, work)


@njit(cache=True)
def _is_ordered(order, trees, tree):
    return tree_in_order(order, trees, tree, order.new, order.stack)


register(
    Monotone,
    snapshot_tree=_snapshot_tree,
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
    new = order.new
    for k in range(new.n[0]):
        new.value[k] = new.stats[k, 1]
    return 0.0 if in_order(new) else -np.inf


@njit(cache=True)
def _old_weight(leaf, order):
    return 0.0


@njit(cache=True)
def _draw_values_within(leaf, rng, order, problem, tree, n_nodes, work):
    trees, old, new, stats = problem.trees, order.old, order.new, work.stats
    column, values, leaf_of, nodes = trees.column, trees.values, trees.leaf_of[tree], work.nodes
    draw_leaves(leaf, rng, column, values, leaf_of, nodes, n_nodes, stats)
    copy_leaves(old, new)
    for k in range(new.n[0]):
        new.value[k] = values[new.node[k], 0]
    if not in_order(new):
        for k in range(old.n[0]):
            values[old.node[k], 0] = old.value[k]
            copy_numbers(old.stats[k], stats[old.node[k]])
        see_values(leaf, column, values, leaf_of, nodes, n_nodes)


for kind, see in ((RowwiseData, see_by_row), (JointData, see_jointly)):
    register(
        kind,
        see_values=see,
        new_values=_new_values,
        old_weight=_old_weight,
        draw_within=_draw_values_within,
    )
