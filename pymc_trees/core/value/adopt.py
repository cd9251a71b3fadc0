"""Trees that were grown on other rows, made valid for these."""

import numpy as np

from pymc_trees.core.columns.cells import MAX_CUT
from pymc_trees.core.columns.design import partition_rows
from pymc_trees.core.columns.mixed import column_of
from pymc_trees.core.columns.rules import log_rule, rule_code
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import split_leaf
from pymc_trees.core.priors.contract import context_of, is_valid_time, log_column, node_summary


@njit(cache=True)
def subtree_sizes(nodes, n):
    """(n,) rows of the subtree at each of the first n node rows, which are trees in preorder."""
    size = np.ones(n, dtype=np.int64)
    for row in range(n - 1, -1, -1):
        if nodes[row, 0] >= 0:
            left = row + 1
            size[row] = 1 + size[left] + size[left + size[left]]
    return size


@njit(cache=True)
def adopt(nodes, size, design, prior, sizes, trees, rows, buffer, altered):
    """Fill working arrays from encoded trees, leaving out splits that the prior forbids.

    A split that sends no row of its node to one side, or for which there is no room, has
    probability 0. The branch to which most rows of the node go takes its place, so that the trees
    stay what they are at rows of the majority.

    Parameters
    ----------
    nodes : (N, fields) float64
        Trees in preorder, one after another, with columns, kinds and cuts of this design.
    size : (N,) int64
        From `subtree_sizes`.
    prior : tree prior
        Only the split weights are used.
    trees : Trees
        Fresh from `make_trees`; overwritten.
    rows, buffer : (n,) uint32
        Overwritten.
    altered : (m,) bool
        Overwritten: whether a split of the tree was left out.
    """
    starts = np.empty(sizes.max_nodes, dtype=np.int64)
    stops = np.empty(sizes.max_nodes, dtype=np.int64)
    stack = np.empty(sizes.max_nodes, dtype=np.int32)
    source = np.empty(sizes.max_nodes, dtype=np.int64)
    first = 0
    for t in range(sizes.m):
        altered[t] = False
        for i in range(sizes.n_rows):
            rows[i] = i
        root = trees.roots[t]
        starts[root], stops[root], source[root] = 0, sizes.n_rows, first
        first += size[first]
        stack[0] = root
        height = 1
        while height > 0:
            height -= 1
            node = stack[height]
            start, stop = starts[node], stops[node]
            trees.count[node] = stop - start
            trees.unsplittable[node], trees.rate[node] = node_summary(
                prior, design, rows, start, stop
            )
            context = context_of(trees, node)
            row = source[node]
            while nodes[row, 0] >= 0:
                code = int(nodes[row, 0])
                cut = rule_code(design, code, nodes[row, 1])
                log_cut = log_rule(design, code, cut, rows, start, stop)
                time = nodes[row, sizes.fields - 1] if sizes.timed else 0.0
                is_valid = log_cut > -np.inf and is_valid_time(prior, context, time)
                middle = partition_rows(design, code, cut, rows, start, stop, buffer)
                if abs(nodes[row, 1]) == MAX_CUT and cut != nodes[row, 1]:
                    # missing against present rows, on a grid of a table that has none missing
                    middle = stop if nodes[row, 1] > 0.0 else start
                left = row + 1
                right = left + size[left]
                if is_valid and split_leaf(trees, node, code, cut):
                    trees.time[node], trees.log_cut[node] = time, log_cut
                    column = column_of(design, code)
                    trees.log_column[node] = log_column(
                        prior, design, column, log_cut, context.rate, rows, start, stop
                    )
                    for side in range(2):  # the left child comes off the stack first
                        child = trees.left[node] if side == 1 else trees.right[node]
                        starts[child] = start if side == 1 else middle
                        stops[child] = middle if side == 1 else stop
                        source[child] = left if side == 1 else right
                        stack[height] = child
                        height += 1
                    break
                altered[t] = True
                row = left if 2 * (middle - start) >= stop - start else right
            if nodes[row, 0] < 0:
                for v in range(sizes.n_values):
                    trees.values[node, v] = nodes[row, 1 + v]
                for k in range(start, stop):
                    trees.leaf_of[t, rows[k]] = node
