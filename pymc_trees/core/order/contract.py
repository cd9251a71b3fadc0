"""Interface of an order of the leaf values of a tree, dispatched on its type; None: no order.

With p0(T, mu) the usual prior of a tree and its leaf values and C the set of those in order, the
prior is

    p(T, mu) = p0(T, mu) 1[(T, mu) in C] / p0(C),

tree by tree. Given everything else, a step that is reversible with respect to the posterior under
p0, taken only where it stays in C, is reversible with respect to this one (Tierney 1994, 2.3.1:
Metropolis-Hastings with that step for a proposal). See `accept_ordered` for leaf values that are
integrated out.
"""

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register
from pymc_trees.core.leaves.contract import draw_leaves


@generic("order")
def snapshot_tree(order, problem, tree, n_nodes, work):
    """Record a tree before it changes; its ``n_nodes`` nodes are in ``work.nodes``."""


@generic("order")
def accept_ordered(order, rng, problem, tree, work, by_rows):
    """Accept a changed tree, or restore the recorded one with its statistics; whether accepted.

    The change is reversible without the order. New leaves get new values, and the resulting tree is
    recorded. ``by_rows``: leaves whose rows did not change keep their values; ``work`` has the rows
    of the nodes.
    """


@generic("order")
def draw_ordered(order, rng, problem, tree, n_nodes, work):
    """Draw values of all leaves of the recorded tree, by a step that keeps them in order."""


@generic("order")
def is_ordered(order, trees, tree):
    """Whether the values of a tree are in order."""


@njit(cache=True)
def no_order(constants, kinds):
    """None, from the constants of a declaration and the kinds of its columns."""
    return None


@njit(cache=True)
def _no_snapshot(order, problem, tree, n_nodes, work):
    pass


@njit(cache=True)
def _accept(order, rng, problem, tree, work, by_rows):
    return True


@njit(cache=True)
def _draw_freely(order, rng, problem, tree, n_nodes, work):
    trees, leaf = problem.trees, problem.leaf
    column, values, leaf_of = trees.column, trees.values, trees.leaf_of[tree]
    draw_leaves(leaf, rng, column, values, leaf_of, work.nodes, n_nodes, work.stats)


@njit(cache=True)
def _no_order(order, trees, tree):
    return True


register(
    type(None),
    snapshot_tree=_no_snapshot,
    accept_ordered=_accept,
    draw_ordered=_draw_freely,
    is_ordered=_no_order,
)
