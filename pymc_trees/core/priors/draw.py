"""A tree drawn from the prior, from the root down."""

import numpy as np

from pymc_trees.core.columns.design import partition_rows
from pymc_trees.core.columns.rules import draw_rule
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.edit import split_leaf
from pymc_trees.core.priors.contract import (
    draw_column,
    draw_time,
    log_column,
    log_split,
    node_summary,
    place_of,
)


@njit(cache=True)
def draw_tree(rng, trees, tree, design, prior, rows, buffer):
    """Grow tree ``tree``, a stump, from the prior; False if the pool is full.

    The caller sets leaf values.
    """
    n = rows.size
    for i in range(n):
        rows[i] = i
    starts = np.empty(trees.column.size, dtype=np.int64)
    stops = np.empty(trees.column.size, dtype=np.int64)
    stack = np.empty(trees.column.size, dtype=np.int32)
    root = trees.roots[tree]
    starts[root], stops[root] = 0, n
    stack[0] = root
    height = 1
    while height > 0:
        height -= 1
        node = stack[height]
        start, stop = starts[node], stops[node]
        trees.count[node] = stop - start
        trees.unsplittable[node], trees.rate[node] = node_summary(prior, design, rows, start, stop)
        place = place_of(trees, node)
        if place.unsplittable or np.log(rng.random()) >= log_split(prior, place):
            for k in range(start, stop):
                trees.leaf_of[tree, rows[k]] = node
            continue
        column = draw_column(rng, prior, design, rows, start, stop)
        code, cut, log_cut = draw_rule(rng, design, column, rows, start, stop)
        if not split_leaf(trees, node, code, cut):
            return False
        trees.log_cut[node] = log_cut
        trees.log_column[node] = log_column(
            prior, design, column, log_cut, place.rate, rows, start, stop
        )
        trees.time[node] = draw_time(rng, prior, place)
        middle = partition_rows(design, code, cut, rows, start, stop, buffer)
        left, right = trees.left[node], trees.right[node]
        starts[left], stops[left] = start, middle
        starts[right], stops[right] = middle, stop
        stack[height] = right
        stack[height + 1] = left
        height += 2
    return True
