"""Leaf models of a single tree whose statistics are sums over rows, from what one row adds."""

from collections.abc import Callable

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import add_row, leaf_output, log_row, register


@njit(cache=True)
def _next_tree(leaf, trees, old, new, nodes, n_nodes, stats):
    if new < 0:
        return
    leaf_of = trees.leaf_of[new]
    for k in range(n_nodes):
        stats[nodes[k]] = 0.0
    for i in range(leaf_of.size):
        add_row(leaf, i, stats[leaf_of[i]])


@njit(cache=True)
def _add_rows(leaf, rows, start, stop, out):
    out[:] = 0.0
    for k in range(start, stop):
        add_row(leaf, rows[k], out)


@njit(cache=True)
def _add_sides(leaf, cells, cut, rows, n, left, right):
    left[:] = 0.0
    right[:] = 0.0
    n_left = 0
    for k in range(n):
        i = rows[k]
        is_left = cells[i] <= cut
        n_left += is_left
        add_row(leaf, i, left if is_left else right)
    return n_left


@njit(cache=True)
def _log_likelihood(leaf, trees):
    values, leaf_of = trees.values, trees.leaf_of[0]
    total = 0.0
    for i in range(leaf_of.size):
        total += log_row(leaf, i, leaf_output(leaf, values[leaf_of[i]], i))
    return total


def register_sums(
    model: type,
    *,
    n_stats: Callable,
    add_row: Callable,
    log_row: Callable,
    log_marginal: Callable,
    draw_values: Callable,
    **others: Callable,
) -> None:
    """Give the kernels of such a leaf model: these five, and what they do not imply.

    Parameters
    ----------
    model : NamedTuple type
        Its data and settings.
    n_stats, add_row, log_row, log_marginal, draw_values : kernel
        As in `contract.LeafKernels`.
    **others : kernel
        Further ones of `contract.LeafKernels`.
    """
    register(
        model,
        n_stats=n_stats,
        add_row=add_row,
        log_row=log_row,
        log_marginal=log_marginal,
        draw_values=draw_values,
        next_tree=_next_tree,
        add_rows=_add_rows,
        add_sides=_add_sides,
        log_likelihood=_log_likelihood,
        **others,
    )
