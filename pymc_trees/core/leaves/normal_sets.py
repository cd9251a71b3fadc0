"""Statistics of normal leaves from rows stored as bits: kernels of `normal` for a `RowSet`.

``stats`` are W, the sum of the precisions, and S, that of precision times residual. If all rows
have one precision, one of two sets gains what the other loses. With a precision for each row such
differences would carry rounding errors of the largest ones to other leaves.
"""

from pymc_trees.core.columns.row_set import count_changed
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.lanes import masked_product_sum, masked_sum
from pymc_trees.core.leaves.contract import add_set
from pymc_trees.core.leaves.masked import FEW, change_of_sum, set_sum


@njit(cache=True)
def add_set_of_rows(leaf, rows, out):
    """`add_rows` of a `RowSet`."""
    r, w, words = leaf.r, leaf.w, rows.words
    if w.size == 1:
        out[0] = w[0] * rows.n
        out[1] = w[0] * set_sum(words, rows.n, r)
    else:
        out[0] = masked_sum(words, w)
        out[1] = masked_product_sum(words, r, w)


@njit(cache=True)
def add_sets(leaf, left, right, stats, out_left, out_right):
    """Statistics of the two parts of a set."""
    if leaf.w.size > 1:
        add_set(leaf, left, out_left)
        add_set(leaf, right, out_right)
    elif left.n <= right.n:
        add_set(leaf, left, out_left)
        _leave(leaf, right, stats[1] - out_left[1], out_right)
    else:
        add_set(leaf, right, out_right)
        _leave(leaf, left, stats[1] - out_right[1], out_left)


@njit(cache=True)
def _leave(leaf, rows, total, out):
    """Statistics of rows of one precision whose S is known."""
    out[0] = leaf.w[0] * rows.n
    out[1] = total


@njit(cache=True)
def renew_set(leaf, rows, old, old_stats, out):
    """`add_set` of a leaf whose rows have changed."""
    if leaf.w.size > 1 or count_changed(rows.words, old) > FEW * old.size:
        add_set(leaf, rows, out)
    else:
        total = old_stats[1] + leaf.w[0] * change_of_sum(rows.words, old, leaf.r)
        _leave(leaf, rows, total, out)


@njit(cache=True)
def renew_sets(leaf, left, right, old, old_stats, out_left, out_right):
    """`add_set` of two leaves after an exchange of rows."""
    renew_set(leaf, left, old[0], old_stats[0], out_left)
    if leaf.w.size > 1:
        add_set(leaf, right, out_right)
    else:
        _leave(leaf, right, old_stats[0][1] + old_stats[1][1] - out_left[1], out_right)
