"""Interface of a leaf model, dispatched on the type of its NamedTuple.

If leaf values integrate out, statistics are sums over rows, and all other kernels follow from the
contribution of one row (`register_sums`). A model whose values do not integrate out
(`nonconjugate`) has drawn values among its statistics, and its ``log_marginal`` is the log weight
of the draw.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int64

from pymc_trees.core.columns.row_set import RowSet, list_rows
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, registrar
from pymc_trees.core.compile.handle import GENERATOR, LIST, NODES, ROW, TABLE, WORDS, Role
from pymc_trees.core.forest.trees import Labels, Trees

LEAF = Role("leaf")


@generic("leaf")
def n_stats(leaf):
    """Entries of a leaf's sufficient statistics."""


@generic("leaf")
def n_outputs(leaf, n_values):
    """Outputs of a leaf with that many values."""


@generic("leaf")
def leaf_output(leaf, values, row):
    """Outputs of a leaf at a row."""


@njit(cache=True)
def _no_path(leaf):
    return False


@generic("leaf", default=_no_path, args=(LEAF,), result=boolean, constant=True)
def reads_path(leaf):
    """Whether a leaf depends on the columns of the splits above it."""


@njit(cache=True)
def _same_path(leaf, path, column):
    return path


@generic("leaf", default=_same_path, args=(LEAF, float64, int64), result=float64)
def path_below(leaf, path, column):
    """Path of the children of a split."""


@njit(cache=True)
def _prior_itself(leaf, rows):
    return leaf


@generic("leaf", default=_prior_itself)
def prior_at(leaf, rows):
    """Model of the prior for leaves that depend on rows."""


@generic("leaf")
def add_row(leaf, i, stats):
    """Add the contribution of a row to the statistics."""


@generic("leaf")
def log_row(leaf, i, output):
    """Log likelihood of a row given the outputs of its leaf."""


@generic("leaf", args=(LEAF, Trees, int64, int64, NODES, int64, TABLE), result=None)
def swap_residual(leaf, trees, old, new, nodes, n_nodes, stats):
    """Close one tree of a sum and open another."""


@generic("leaf", args=(LEAF, LIST, int64, int64, ROW), result=None)
def add_rows(leaf, rows, start, stop, out):
    """Statistics of some rows."""


@njit(cache=True)
def _add_list(leaf, rows, out):
    add_rows(leaf, rows.index.row_list, 0, list_rows(rows), out)


@generic("leaf", default=_add_list, args=(LEAF, RowSet, ROW), result=None)
def add_set(leaf, rows, out):
    """Statistics of a set of rows."""


@njit(cache=True)
def _add_each(leaf, left, right, stats, out_left, out_right):
    add_set(leaf, left, out_left)
    add_set(leaf, right, out_right)


@generic("leaf", default=_add_each, args=(LEAF, RowSet, RowSet, ROW, ROW, ROW), result=None)
def add_sets(leaf, left, right, stats, out_left, out_right):
    """Statistics of the two parts of a set of rows."""


@njit(cache=True)
def _add_anew(leaf, rows, old, old_stats, out):
    add_set(leaf, rows, out)


@generic("leaf", default=_add_anew, args=(LEAF, RowSet, WORDS, ROW, ROW), result=None)
def renew_set(leaf, rows, old, old_stats, out):
    """Statistics of a leaf whose rows have changed."""


@njit(cache=True)
def _renew_each(leaf, left, right, old, old_stats, out_left, out_right):
    renew_set(leaf, left, old[0], old_stats[0], out_left)
    renew_set(leaf, right, old[1], old_stats[1], out_right)


@generic(
    "leaf",
    default=_renew_each,
    args=(LEAF, RowSet, RowSet, (WORDS, WORDS), (ROW, ROW), ROW, ROW),
    result=None,
)
def renew_sets(leaf, left, right, old, old_stats, out_left, out_right):
    """Statistics of two leaves after an exchange of rows."""


@njit(cache=True)
def _no_latents(leaf, rng):
    pass


@generic("leaf", default=_no_latents, args=(LEAF, GENERATOR), result=None)
def resample_latents(leaf, rng):
    """Redraw latent variables of the rows, between two sweeps."""


@generic("leaf", args=(LEAF, Labels, int64, int64, TABLE, ROW), result=None)
def merge_stats(leaf, leaf_of, left, right, stats, out):
    """Statistics of the rows of two leaves."""


@generic("leaf", args=(LEAF, ROW), result=float64)
def log_marginal(leaf, stats):
    """Log marginal likelihood of a leaf's rows."""


@njit(cache=True)
def _log_marginals(leaf, left, right):
    return log_marginal(leaf, left), log_marginal(leaf, right)


@generic("leaf", default=_log_marginals, args=(LEAF, ROW, ROW), result=(float64, float64))
def log_marginals(leaf, left, right):
    """`log_marginal` of two leaves, in one call."""


@generic("leaf")
def draw_values(leaf, rng, stats, out):
    """Leaf value from its conditional."""


@generic("leaf", args=(LEAF, GENERATOR, NODES, TABLE, Labels, NODES, int64, TABLE), result=None)
def draw_leaves(leaf, rng, column, values, leaf_of, nodes, n_nodes, stats):
    """Values of all leaves of a tree from their conditional."""


@generic("leaf")
def log_likelihood(leaf, trees):
    """Log likelihood of all rows given the leaf values."""


@generic("leaf")
def log_constant(leaf):
    """Log of the factor of p(all rows) that does not depend on the tree."""


def _scale_precision(leaf, power):
    if not hasattr(leaf, "w"):
        raise TypeError(
            f"{type(leaf).__name__} has no kernel tempered(leaf, power), which Tempering calls."
        )
    return leaf._replace(w=power * leaf.w)


@generic("leaf", default=_scale_precision)
def tempered(leaf, power):
    """Leaf model under a power of the likelihood; called from Python only."""


@njit(cache=True)
def _as_many(leaf, n_values):
    return n_values


@njit(cache=True)
def _constant(leaf, values, row):
    """`leaf_output` of a leaf whose values are its outputs at every row."""
    return values


@njit(cache=True)
def _add_statistics(leaf, leaf_of, left, right, stats, out):
    """`merge_stats` of sums over rows."""
    for d in range(stats.shape[1]):
        out[d] = stats[left, d] + stats[right, d]


@njit(cache=True)
def _draw_each(leaf, rng, column, values, leaf_of, nodes, n_nodes, stats):
    """`draw_leaves` where leaves are independent given their statistics."""
    for k in range(n_nodes):
        node = nodes[k]
        if column[node] < 0:
            draw_values(leaf, rng, stats[node], values[node])


@njit(cache=True)
def _zero(leaf):
    return 0.0


class LeafKernels(NamedTuple):
    """Kernels of a leaf model; None for those that are never called."""

    n_stats: Callable
    """``(leaf)``: entries of a leaf's sufficient statistics."""
    n_outputs: Callable = _as_many
    """``(leaf, n_values)``: outputs K of a leaf with that many values, at most as many."""
    leaf_output: Callable = _constant
    """``(leaf, values, row)``: the K outputs at a row, to be read by index; by default the values
    themselves. ``row`` numbers the rows of the leaf model: the training rows, or those at which a
    forest is evaluated."""
    reads_path: Callable | None = None
    """``(leaf)``: whether a leaf depends on the columns of the splits above it; by default False.
    Then the last of its statistics is its path (`leaves.path` writes it), 0 at the root."""
    path_below: Callable | None = None
    """``(leaf, path, column)``: path, a float, of the children of a node that is split on a column,
    from the path of the node."""
    prior_at: Callable | None = None
    """``(leaf, rows)``: model that draws values from the prior, from the model of the prior and the
    one with the rows; by default the first."""
    swap_residual: Callable | None = None
    """``(leaf, trees, old, new, nodes, n_nodes, stats)``: close tree ``old`` (-1: none) and open
    tree ``new`` (-1: none) of a sum of trees: update the working residual, and write the statistics
    of the leaves of ``new`` among ``nodes[:n_nodes]``."""
    add_row: Callable | None = None
    """``(leaf, i, stats)``: add the contribution of row i to statistics that are sums; nothing
    without data."""
    log_row: Callable | None = None
    """``(leaf, i, output)``: log p(row i) given the outputs of its leaf; 0 without data."""
    add_rows: Callable | None = None
    """``(leaf, rows, start, stop, out)``: write the statistics of ``rows[start:stop]``."""
    add_set: Callable | None = None
    """``(leaf, rows, out)``: `add_rows` of a `RowSet`; by default it lists the rows."""
    add_sets: Callable | None = None
    """``(leaf, left, right, stats, out_left, out_right)``: write the statistics of two disjoint
    `RowSet`s, given those of their union; by default by `add_set`."""
    renew_set: Callable | None = None
    """``(leaf, rows, old, old_stats, out)``: write the statistics of a leaf, given those of its old
    rows, ``old`` as words; by default by `add_set`."""
    renew_sets: Callable | None = None
    """``(leaf, left, right, old, old_stats, out_left, out_right)``: the same for two leaves that
    have exchanged rows, with ``old`` and ``old_stats`` as pairs; by default by `renew_set`."""
    resample_latents: Callable | None = None
    """``(leaf, rng)``: draw latent variables of the rows given the trees, between two sweeps; by
    default nothing."""
    merge_stats: Callable = _add_statistics
    """``(leaf, leaf_of, left, right, stats, out)``: write the statistics of the rows of two leaves;
    by default the sum of theirs."""
    log_marginal: Callable | None = None
    """``(leaf, stats)``: log p(rows of the leaf), leaf value integrated out."""
    draw_values: Callable | None = None
    """``(leaf, rng, stats, out)``: leaf value given its rows; the prior when ``stats`` are 0."""
    draw_leaves: Callable = _draw_each
    """``(leaf, rng, column, values, leaf_of, nodes, n_nodes, stats)``: new values of all leaves of
    a tree, the leaves among ``nodes[:n_nodes]``; ``leaf_of`` is the tree's own. By default
    `draw_values` of each."""
    log_likelihood: Callable | None = None
    """``(leaf, trees)``: log p(all rows) given the leaf values, outside any tree."""
    log_constant: Callable = _zero
    """``(leaf)``: log p(all rows) less the log marginals of the leaves, the same for any tree."""
    tempered: Callable | None = None
    """``(leaf, power)``: model of the same rows with the likelihood, or the marginal likelihood,
    raised to a power in (0, 1]; a Python function. By default it multiplies ``leaf.w`` by the
    power."""


register = registrar(LeafKernels)
"""Register the kernels of a leaf model."""


# --------------------------------------------------------- Sums of the outputs of trees at each row


class ConstantLeaf(NamedTuple):
    """Leaf whose values are its outputs at every row, without prior or data."""

    n_values: int


@njit(cache=True)
def _n_stats_of_constant(leaf):
    return 0


register(ConstantLeaf, n_stats=_n_stats_of_constant)


@njit(cache=True)
def constant_leaf(n_values, X, constants):
    """`ConstantLeaf`, for any rows."""
    return ConstantLeaf(n_values)


@njit(cache=True)
def add_outputs(leaf, values, leaf_of, total):
    """Add the outputs of one tree at all rows to ``total``, (n, K).

    Parameters
    ----------
    values : (N, V) float64
        Leaf values.
    leaf_of : (n,) uint16 or uint32
        The tree's leaf of each row.
    """
    for i in range(leaf_of.size):
        output = leaf_output(leaf, values[leaf_of[i]], i)
        for k in range(total.shape[1]):
            total[i, k] += output[k]


@njit(cache=True)
def subtract_outputs(leaf, values, leaf_of, total):
    """Subtract the outputs of one tree at all rows from ``total``, (n, K)."""
    for i in range(leaf_of.size):
        output = leaf_output(leaf, values[leaf_of[i]], i)
        for k in range(total.shape[1]):
            total[i, k] -= output[k]


@njit(cache=True)
def log_likelihood_of(leaf, trees):
    """`log_likelihood` between sweeps, for calls from Python."""
    return log_likelihood(leaf, trees)


# --------------------------------------------------------- Models defined by one row's contribution
#
# In a sum of trees, the model keeps a working residual ``r``: target minus all trees, or minus
# all trees but the open one. `add_row` and `log_row` then refer to the residual.


@njit(cache=True)
def _swap_residual(leaf, trees, old, new, nodes, n_nodes, stats):
    if new < 0:
        return
    leaf_of = trees.leaf_of[new]
    for k in range(n_nodes):
        stats[nodes[k]] = 0.0
    for i in range(leaf_of.size):
        add_row(leaf, i, stats[leaf_of[i]])


@njit(cache=True)
def _swap_residual_of_sum(leaf, trees, old, new, nodes, n_nodes, stats):
    r = leaf.r.reshape(leaf.r.size, 1)
    if old >= 0:
        subtract_outputs(leaf, trees.values, trees.leaf_of[old], r)
    if new >= 0:
        add_outputs(leaf, trees.values, trees.leaf_of[new], r)
        _swap_residual(leaf, trees, old, new, nodes, n_nodes, stats)


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
    no_output = np.zeros(1)
    total = 0.0
    for i in range(leaf.r.size):
        total += log_row(leaf, i, no_output)
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
    """Register a leaf model whose statistics are sums over rows: five kernels imply most others.

    Parameters
    ----------
    model : NamedTuple type
        Data and settings.
    n_stats, add_row, log_row, log_marginal, draw_values : kernel
        As in `LeafKernels`.
    residual : bool
        Whether the model has one output and keeps a working residual of a sum of trees, a field
        ``r`` of shape (n,). A single tree needs none.
    **others : kernel
        Further kernels of `LeafKernels`.
    """
    others.setdefault(
        "log_likelihood", _log_likelihood_of_residual if residual else _log_likelihood
    )
    register(
        model,
        n_stats=n_stats,
        add_row=add_row,
        log_row=log_row,
        log_marginal=log_marginal,
        draw_values=draw_values,
        swap_residual=_swap_residual_of_sum if residual else _swap_residual,
        add_rows=_add_rows,
        **others,
    )
