"""Leaf models whose statistics are sums over rows, defined by the contribution of one row.

In a sum of trees, the model keeps a working residual ``r``: target minus all trees, or minus all
trees but the open one. `add_row` and `log_row` then refer to the residual.
"""

from collections.abc import Callable

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import add_row, leaf_output, log_row, register
from pymc_trees.core.leaves.outputs import add_outputs, subtract_outputs


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
def _next_tree_of_sum(leaf, trees, old, new, nodes, n_nodes, stats):
    r = leaf.r.reshape(leaf.r.size, 1)
    if old >= 0:
        subtract_outputs(leaf, trees.values, trees.leaf_of[old], r)
    if new >= 0:
        add_outputs(leaf, trees.values, trees.leaf_of[new], r)
        _next_tree(leaf, trees, old, new, nodes, n_nodes, stats)


@njit(cache=True)
def _add_rows(leaf, rows, start, stop, out):
    out[:] = 0.0
    for k in range(start, stop):
        add_row(leaf, rows[k], out)


@njit(cache=True)
def _log_likelihood(leaf, trees):
    values, leaf_of = trees.values, trees.leaf_of[0]
    total = 0.0
    for i in range(leaf_of.size):
        total += log_row(leaf, i, leaf_output(leaf, values[leaf_of[i]], i))
    return total


@njit(cache=True)
def _log_likelihood_of_residual(leaf, trees):
    nothing = np.zeros(1)
    total = 0.0
    for i in range(leaf.r.size):
        total += log_row(leaf, i, nothing)
    return total


def register_sums(
    model: type,
    *,
    n_stats: Callable,
    add_row: Callable,
    log_row: Callable,
    log_marginal: Callable,
    draw_values: Callable,
    residual: bool = False,
    **others: Callable,
) -> None:
    """Register the kernels of such a leaf model: these five, and those not implied by them.

    Parameters
    ----------
    model : NamedTuple type
        Its data and settings.
    n_stats, add_row, log_row, log_marginal, draw_values : kernel
        As in `contract.LeafKernels`.
    residual : bool
        Whether the model has one output and keeps a working residual of a sum of trees, a field
        ``r`` of shape (n,). A single tree needs none.
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
        swap_residual=_next_tree_of_sum if residual else _next_tree,
        add_rows=_add_rows,
        log_likelihood=_log_likelihood_of_residual if residual else _log_likelihood,
        **others,
    )
