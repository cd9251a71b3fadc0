"""Interface of a leaf model, dispatched on the type of its NamedTuple.

If leaf values integrate out, statistics are sums over rows; for a single tree everything else
follows from the contribution of one row (`sums`). A model whose values do not integrate out
(`nonconjugate`) has drawn values among its statistics, and its ``log_marginal`` is the log weight
of the draw.
"""

from collections.abc import Callable
from typing import NamedTuple

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
def _prior_itself(leaf, reads):
    return leaf


@generic("leaf", default=_prior_itself)
def prior_at(leaf, reads):
    """Prior of the values of leaves that read rows."""


@generic("leaf")
def add_row(leaf, i, stats):
    """Add what a row adds to the statistics."""


@generic("leaf")
def log_row(leaf, i, output):
    """Log likelihood of a row given the outputs of its leaf."""


@generic("leaf", args=(LEAF, Trees, int64, int64, NODES, int64, TABLE), result=None)
def swap_residual(leaf, trees, old, new, nodes, n_nodes, stats):
    """End one tree of a sum and begin another."""


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
def _leave_rows(leaf, rng):
    pass


@generic("leaf", default=_leave_rows, args=(LEAF, GENERATOR), result=None)
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


def _less_precise(leaf, power):
    if not hasattr(leaf, "w"):
        raise TypeError(
            f"{type(leaf).__name__} does not answer flatter(leaf, power), which Tempering asks."
        )
    return leaf._replace(w=power * leaf.w)


@generic("leaf", default=_less_precise)
def flatter(leaf, power):
    """Leaf model under a flatter likelihood; called from Python only."""


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
    """Kernels of a leaf model; None if never called."""

    n_stats: Callable
    """``(leaf)``: entries of a leaf's sufficient statistics."""
    n_outputs: Callable = _as_many
    """``(leaf, n_values)``: outputs K of a leaf with that many values; no more than these."""
    leaf_output: Callable = _constant
    """``(leaf, values, row)``: the K outputs at a row of a leaf with these values, to be read by
    index; the values themselves unless given. ``row`` counts the rows that the leaf model holds:
    the training rows, or those at which a forest is evaluated."""
    reads_path: Callable | None = None
    """``(leaf)``: whether a leaf depends on the columns of the splits above it; False unless given.
    If so, the last of its statistics is its path, written by those who add up the others, and 0 at
    the root."""
    path_below: Callable | None = None
    """``(leaf, path, column)``: path, a float, of the children of a node that is split on a column,
    from that of the node."""
    prior_at: Callable | None = None
    """``(leaf, reads)``: model to draw values from the prior with, from that of the prior and the
    one that reads rows; the first unless given."""
    swap_residual: Callable | None = None
    """``(leaf, trees, old, new, nodes, n_nodes, stats)``: end tree ``old`` (-1: none) and begin
    tree ``new`` (-1: none) of a sum of trees: move the working residual, and write the statistics
    of the leaves of ``new`` among ``nodes[:n_nodes]``."""
    add_row: Callable | None = None
    """``(leaf, i, stats)``: add what row i adds to the statistics, where they are sums; nothing
    when the leaf has no data."""
    log_row: Callable | None = None
    """``(leaf, i, output)``: log p(row i) given the outputs of its leaf; 0 without data."""
    add_rows: Callable | None = None
    """``(leaf, rows, start, stop, out)``: write the statistics of ``rows[start:stop]``."""
    add_set: Callable | None = None
    """``(leaf, rows, out)``: `add_rows` of a `RowSet`; of a list of its rows unless given."""
    add_sets: Callable | None = None
    """``(leaf, left, right, stats, out_left, out_right)``: write the statistics of two `RowSet`s
    without a row in common, ``stats`` being those of both together; by `add_set` unless given."""
    renew_set: Callable | None = None
    """``(leaf, rows, old, old_stats, out)``: write the statistics of a leaf that had other rows,
    ``old`` as words, and those statistics; by `add_set` unless given."""
    renew_sets: Callable | None = None
    """``(leaf, left, right, old, old_stats, out_left, out_right)``: the same of two leaves
    between which rows have changed, by `renew_set` unless given; ``old`` and ``old_stats`` are
    pairs."""
    resample_latents: Callable | None = None
    """``(leaf, rng)``: draw latent variables of the rows given the trees, between two sweeps;
    nothing unless given."""
    merge_stats: Callable = _add_statistics
    """``(leaf, leaf_of, left, right, stats, out)``: write the statistics of the rows of two leaves;
    their sum unless given."""
    log_marginal: Callable | None = None
    """``(leaf, stats)``: log p(rows of the leaf), leaf value integrated out."""
    draw_values: Callable | None = None
    """``(leaf, rng, stats, out)``: leaf value given its rows; the prior when ``stats`` are 0."""
    draw_leaves: Callable = _draw_each
    """``(leaf, rng, column, values, leaf_of, nodes, n_nodes, stats)``: new values of all leaves of
    a tree, the leaves among ``nodes[:n_nodes]``; ``leaf_of`` is the tree's own. `draw_values` of
    each unless given."""
    log_likelihood: Callable | None = None
    """``(leaf, trees)``: log p(all rows) given the leaf values, outside any tree."""
    log_constant: Callable = _zero
    """``(leaf)``: log p(all rows) less the log marginals of the leaves, the same for any tree."""
    flatter: Callable | None = None
    """``(leaf, power)``: model of the same rows under a likelihood, or a marginal likelihood, that
    is raised to a power in (0, 1]; a Python function. The precisions ``leaf.w`` times the power
    unless given."""


register = registrar(LeafKernels)
"""Register the kernels of a leaf model."""
