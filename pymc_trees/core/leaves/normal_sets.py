"""Statistics of normal leaves from rows kept as bits: the kernels of `normal` that take a `RowSet`.

``stats`` are W, the sum of the precisions, and S, that of precision times residual.
"""

from pymc_trees.core.columns.row_set import count_changed
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.masked import (
    change_of_sum,
    masked_add,
    masked_add_and_sum,
    masked_product_sum,
    masked_sum,
    set_sum,
)


@njit(cache=True)
def add_set(leaf, rows, out):
    """`add_rows` of a `RowSet`."""
    r, w, words = leaf.r, leaf.w, rows.words
    if w.size == 1:
        out[0] = w[0] * rows.n
        out[1] = w[0] * set_sum(words, rows.n, r)
    else:
        out[0] = masked_sum(words, w)
        out[1] = masked_product_sum(words, w, r)


@njit(cache=True)
def renew_set(leaf, rows, old, old_stats, out):
    """`add_set` of a leaf whose rows have changed."""
    # With a precision for each row, differences would carry the largest ones to other leaves.
    if leaf.w.size > 1 or count_changed(rows.words, old) > 4 * old.size:
        add_set(leaf, rows, out)
    else:
        out[0] = leaf.w[0] * rows.n
        out[1] = old_stats[1] + leaf.w[0] * change_of_sum(rows.words, old, leaf.r)


@njit(cache=True)
def open_tree(leaf, trees, tree, nodes, n_nodes, sets, stats):
    """Add the values of a tree to the residual, and up the residual in its leaves."""
    r, w, column, values, count = leaf.r, leaf.w, trees.column, trees.values, trees.count
    for k in range(n_nodes):
        node = nodes[k]
        if column[node] >= 0:
            continue
        words = sets[node]
        total = masked_add_and_sum(words, r, values[node, 0])
        if w.size == 1:
            stats[node, 0] = w[0] * count[node]
            stats[node, 1] = w[0] * total
        else:
            stats[node, 0] = masked_sum(words, w)
            stats[node, 1] = masked_product_sum(words, w, r)


@njit(cache=True)
def close_tree(leaf, trees, tree, nodes, n_nodes, sets):
    """Subtract the values of a tree from the residual."""
    r, column, values = leaf.r, trees.column, trees.values
    for k in range(n_nodes):
        node = nodes[k]
        if column[node] < 0:
            masked_add(sets[node], r, -values[node, 0])
