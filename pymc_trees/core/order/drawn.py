"""Orders when leaf values are not integrated out: a tree has values, in order or not.

The statistics of a leaf hold the value drawn for it. A step on (T, mu) under the likelihood itself
is reversible, so it is accepted if it stays in order.
"""

import numpy as np

from pymc_trees.core.compile.assign import copy_numbers
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register
from pymc_trees.core.leaves.contract import draw_leaves
from pymc_trees.core.leaves.nonconjugate.joint import JointData
from pymc_trees.core.leaves.nonconjugate.joint import see_values as see_jointly
from pymc_trees.core.leaves.nonconjugate.rowwise import RowwiseData
from pymc_trees.core.leaves.nonconjugate.rowwise import see_values as see_by_row
from pymc_trees.core.order.leaves import copy_leaves, in_order


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
def _draw_within(leaf, rng, order, problem, tree, n_nodes, work):
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
        draw_within=_draw_within,
    )
