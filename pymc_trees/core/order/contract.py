"""What is asked of an order among the leaf values of a tree, dispatched on its type; None is none.

With p0(T, mu) the usual prior of a tree and its leaf values and C the set of those in order, the
prior is

    p(T, mu) = p0(T, mu) 1[(T, mu) in C] / p0(C),

tree by tree. Given everything else, a step that is reversible with respect to the posterior under
p0, taken only where it stays in C, is reversible with respect to this one (Tierney 1994, 2.3.1:
Metropolis-Hastings with that step for a proposal). `settle` says more where values integrate out.
"""

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register
from pymc_trees.core.leaves.contract import draw_leaves


@generic("order", inlined=True)
def note_tree(order, problem, tree, n_nodes, work):
    """Take note of a tree before it changes, its ``n_nodes`` nodes in ``work.nodes``."""


@generic("order", inlined=True)
def settle(order, rng, problem, tree, work, by_rows):
    """Whether a tree that has changed may stay; if not it is as it was noted, with its statistics.

    What changed it was reversible without the order. Its new leaves have new values afterwards,
    and the tree is noted as it now is. ``by_rows``: leaves whose rows are as they were keep their
    values, the rows of nodes being known to ``work``.
    """


@generic("order", inlined=True)
def draw_ordered(order, rng, problem, tree, n_nodes, work):
    """Values of all leaves of a tree that was noted, by a step that leaves them in order."""


@generic("order", inlined=True)
def is_ordered(order, trees, tree):
    """Whether the values of a tree are in order."""


@njit(cache=True)
def no_order(constants, kinds):
    """None, from the constants of a declaration and the kinds of its columns."""
    return None


@njit(cache=True)
def _note_nothing(order, problem, tree, n_nodes, work):
    pass


@njit(cache=True)
def _stay(order, rng, problem, tree, work, by_rows):
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
    note_tree=_note_nothing,
    settle=_stay,
    draw_ordered=_draw_freely,
    is_ordered=_no_order,
)
