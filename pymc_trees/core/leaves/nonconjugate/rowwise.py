"""Normal leaf values, any likelihood that is a product over rows: weighted draws.

No leaf value is integrated out. Where a conjugate leaf has log p(rows of the leaf), this one has
the log weight of a value drawn for those rows,

    log w = log p(rows | mu) + log p(mu) - log q(mu | rows),

with q an approximation to the conditional of mu (`proposal`). A move that replaces leaves draws new
values and weights both them and the old ones by this rule; its Metropolis-Hastings ratio is that of
a conjugate leaf with log w instead of log p(rows): a reversible jump, exact for any q (Linero 2022,
section 3). A good q makes weights nearly constant.

The generator is part of the leaf, since its weights are drawn.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.row_set import write_rows
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.leaves.contract import add_outputs, register, subtract_outputs
from pymc_trees.core.leaves.nonconjugate.native import call_native
from pymc_trees.core.leaves.nonconjugate.proposal import (
    draw_proposal,
    fit_groups,
    log_prior,
    log_proposal,
)


@by_pointer
class RowWorkspace(NamedTuple):
    """Arrays that the kernels overwrite; n rows, at most G groups (leaves), K values."""

    rows: np.ndarray
    """(n,) int64: selected rows."""
    labels: np.ndarray
    """(n,) int64: group of each."""
    outputs: np.ndarray
    """(n, K) their outputs."""
    values: np.ndarray
    """(n, 1) log-likelihoods."""
    open_rows: np.ndarray
    """(n,) int64: rows of groups whose search has not converged."""
    open_labels: np.ndarray
    slopes: np.ndarray
    """(n, K + K^2) gradient and second derivatives."""
    label_of: np.ndarray
    """(N,) int64: group of each leaf."""
    mode: np.ndarray
    """(G, K)"""
    factor: np.ndarray
    """(G, K, K) lower Cholesky factor of the precision at the mode."""
    drawn: np.ndarray
    """(G, K)"""
    total: np.ndarray
    """(G,) log-likelihood of each group."""


def make_row_workspace(n: int, k: int, max_nodes: int) -> RowWorkspace:
    """Workspace for n rows, K outputs and the leaves of one tree."""
    most = min(max_nodes, n) + 1
    return RowWorkspace(
        rows=np.arange(n),
        labels=np.zeros(n, dtype=np.int64),
        outputs=np.zeros((n, k)),
        values=np.zeros((n, 1)),
        open_rows=np.zeros(n, dtype=np.int64),
        open_labels=np.zeros(n, dtype=np.int64),
        slopes=np.zeros((n, k + k * k)),
        label_of=np.zeros(max_nodes, dtype=np.int64),
        mode=np.zeros((most, k)),
        factor=np.zeros((most, k, k)),
        drawn=np.zeros((most, k)),
        total=np.zeros(most),
    )


# --------------------------------------------------------------------------------------------------


class RowwiseData(NamedTuple):
    """A normal leaf and its data, under a native likelihood."""

    mean: np.ndarray
    """(K,)"""
    sd: np.ndarray
    """(K,)"""
    rng: np.random.Generator
    value_at: int
    """Address of the log-likelihood of rows, `native`."""
    slopes_at: int
    """Address of its gradient and second derivatives in the row's own outputs."""
    table: np.ndarray
    data: np.ndarray
    offset: np.ndarray
    """(n, K) sum of all trees, or of all but the open one."""
    log_rows: np.ndarray
    """(n,) log-likelihood of each row under the current trees."""
    work: RowWorkspace


def make_rowwise(mean, sd, rng, value_at, slopes_at, numbers, offset, max_nodes):
    """Leaf model of a native likelihood and its ``table`` and ``data``.

    ``offset``, the sum of all trees, is used in place.
    """
    table, data = numbers
    n, k = offset.shape
    mean = np.broadcast_to(np.asarray(mean, dtype=np.float64), (k,)).copy()
    sd = np.broadcast_to(np.asarray(sd, dtype=np.float64), (k,)).copy()
    work = make_row_workspace(n, k, max_nodes)
    return RowwiseData(mean, sd, rng, value_at, slopes_at, table, data, offset, np.zeros(n), work)


# Statistics of a leaf: log w, the value (K), the mode (K), the factor (K^2).


@njit(cache=True)
def _n_stats(leaf):
    k = leaf.mean.size
    return 1 + 2 * k + k * k


@njit(cache=True)
def _add_up(leaf, n, n_groups, values):
    """Log-likelihood, by group, of the selected rows with ``values`` added to the other trees.

    ``work.values`` has it row by row.
    """
    work, offset = leaf.work, leaf.offset
    rows, labels, outputs, total = work.rows, work.labels, work.outputs, work.total
    for i in range(n):
        for k in range(offset.shape[1]):
            outputs[i, k] = offset[rows[i], k] + values[labels[i], k]
    call_native(leaf.value_at, n, rows, outputs, leaf.table, leaf.data, work.values)
    total[:n_groups] = 0.0
    for i in range(n):
        value = work.values[i, 0]
        total[labels[i]] += value if value < np.inf else -np.inf  # NaN as well


@njit(cache=True)
def evaluate_rows(leaf):
    """Log-likelihood of each row at ``leaf.offset``, in ``work.values``; their sum."""
    offset, work = leaf.offset, leaf.work
    rows, log_rows = work.rows, work.values
    n = rows.size
    for i in range(n):
        rows[i] = i
    call_native(leaf.value_at, n, rows, offset, leaf.table, leaf.data, log_rows)
    total = 0.0
    for i in range(n):
        total += log_rows[i, 0] if log_rows[i, 0] < np.inf else -np.inf  # NaN as well
    return total


@njit(cache=True)
def store_log_rows(leaf):
    """Store the last evaluation as the log-likelihoods of the current trees."""
    for i in range(leaf.log_rows.size):
        leaf.log_rows[i] = leaf.work.values[i, 0]


@njit(cache=True)
def weigh(leaf, g, value, out):
    """Write the statistics of group ``g`` at a value, its log-likelihood in ``work.total``."""
    work = leaf.work
    k = value.size
    out[0] = (
        work.total[g]
        + log_prior(leaf.mean, leaf.sd, value)
        - log_proposal(leaf.mean, leaf.sd, work.mode[g], work.factor[g], value)
    )
    for a in range(k):
        out[1 + a] = value[a]
        out[1 + k + a] = work.mode[g, a]
        for b in range(k):
            out[1 + 2 * k + a * k + b] = work.factor[g, a, b]


@njit(cache=True)
def draw_and_weigh(leaf, n, n_groups):
    """Fit the groups of the selected rows and draw a value for each; `weigh` writes them."""
    work = leaf.work
    fit_groups(leaf, n, n_groups)
    for g in range(n_groups):
        draw_proposal(leaf.rng, leaf.mean, leaf.sd, work.mode[g], work.factor[g], work.drawn[g])
    _add_up(leaf, n, n_groups, work.drawn)


@njit(cache=True)
def _add_sets(leaf, left, right, stats, out_left, out_right):
    work = leaf.work
    n_left = write_rows(left.words, work.rows, 0)
    n = write_rows(right.words, work.rows, n_left)
    for i in range(n):
        work.labels[i] = int(i >= n_left)
    draw_and_weigh(leaf, n, 2)
    weigh(leaf, 0, work.drawn[0], out_left)
    weigh(leaf, 1, work.drawn[1], out_right)


@njit(cache=True)
def _renew_sets(leaf, left, right, old, old_stats, out_left, out_right):
    _add_sets(leaf, left, right, old_stats[0], out_left, out_right)


@njit(cache=True)
def _add_rows(leaf, rows, start, stop, out):
    work = leaf.work
    for i in range(stop - start):
        work.rows[i] = rows[start + i]
        work.labels[i] = 0
    draw_and_weigh(leaf, stop - start, 1)
    weigh(leaf, 0, work.drawn[0], out)


@njit(cache=True)
def _merge_stats(leaf, leaf_of, left, right, stats, out):
    work = leaf.work
    n = 0
    for i in range(leaf_of.size):
        if leaf_of[i] == left or leaf_of[i] == right:
            work.rows[n] = i
            work.labels[n] = 0
            n += 1
    draw_and_weigh(leaf, n, 1)
    weigh(leaf, 0, work.drawn[0], out)


@njit(cache=True)
def _label_leaves(leaf, column, leaf_of, nodes, n_nodes):
    """Select all rows, grouped by leaf; return the number of groups."""
    work = leaf.work
    n_groups = 0
    for k in range(n_nodes):
        if column[nodes[k]] < 0:
            work.label_of[nodes[k]] = n_groups
            n_groups += 1
    for i in range(leaf_of.size):
        work.rows[i] = i
        work.labels[i] = work.label_of[leaf_of[i]]
    return n_groups


@njit(cache=True)
def _swap_residual(leaf, trees, old, new, nodes, n_nodes, stats):
    offset, work, values, log_rows = leaf.offset, leaf.work, trees.values, leaf.log_rows
    n, n_values = offset.shape
    if old >= 0:
        add_outputs(leaf, values, trees.leaf_of[old], offset)
    else:
        evaluate_rows(leaf)
        store_log_rows(leaf)
    if new < 0:
        return
    leaf_of = trees.leaf_of[new]
    subtract_outputs(leaf, values, leaf_of, offset)
    n_groups = _label_leaves(leaf, trees.column, leaf_of, nodes, n_nodes)
    fit_groups(leaf, n, n_groups)
    work.total[:n_groups] = 0.0
    for i in range(n):
        work.total[work.labels[i]] += log_rows[i]
    for k in range(n_nodes):
        node = nodes[k]
        if trees.column[node] < 0:
            weigh(leaf, work.label_of[node], values[node], stats[node])


@njit(cache=True)
def _draw_leaves(leaf, rng, column, values, leaf_of, nodes, n_nodes, stats):
    """Write the values of a tree after its move, then one independence step for each leaf."""
    work, log_rows = leaf.work, leaf.log_rows
    n, n_values = leaf_of.size, values.shape[1]
    n_groups = _label_leaves(leaf, column, leaf_of, nodes, n_nodes)
    moved = False
    for k in range(n_nodes):
        node = nodes[k]
        if column[node] >= 0:
            continue
        g, s = work.label_of[node], stats[node]
        for a in range(n_values):
            moved |= values[node, a] != s[1 + a]
            values[node, a] = s[1 + a]
            work.mode[g, a] = s[1 + n_values + a]
            for b in range(n_values):
                work.factor[g, a, b] = s[1 + 2 * n_values + a * n_values + b]
            work.drawn[g, a] = values[node, a]
    if moved:
        _add_up(leaf, n, n_groups, work.drawn)
        store_log_rows(leaf)
    for g in range(n_groups):
        draw_proposal(rng, leaf.mean, leaf.sd, work.mode[g], work.factor[g], work.drawn[g])
    _add_up(leaf, n, n_groups, work.drawn)
    proposed = np.empty(_n_stats(leaf))
    for k in range(n_nodes):
        node = nodes[k]
        if column[node] >= 0:
            continue
        g = work.label_of[node]
        weigh(leaf, g, work.drawn[g], proposed)
        # ratio of weights: the proposal does not depend on the current value
        if np.log(rng.random()) < proposed[0] - stats[node, 0]:
            stats[node] = proposed
            values[node] = work.drawn[g]
            work.total[g] = 1.0  # accepted
        else:
            work.total[g] = 0.0
    for i in range(n):
        if work.total[work.labels[i]] == 1.0:
            log_rows[i] = work.values[i, 0]


@njit(cache=True)
def evaluate_values(leaf, column, values, leaf_of, nodes, n_nodes):
    """Evaluate the rows at the values of the leaves of the open tree."""
    n_groups, drawn = _label_leaves(leaf, column, leaf_of, nodes, n_nodes), leaf.work.drawn
    for k in range(n_nodes):
        if column[nodes[k]] < 0:
            for a in range(values.shape[1]):
                drawn[leaf.work.label_of[nodes[k]], a] = values[nodes[k], a]
    _add_up(leaf, leaf_of.size, n_groups, drawn)
    store_log_rows(leaf)


@njit(cache=True)
def _log_marginal(leaf, stats):
    return stats[0]


@njit(cache=True)
def _log_likelihood(leaf, trees):
    return np.sum(leaf.log_rows)


register(
    RowwiseData,
    n_stats=_n_stats,
    swap_residual=_swap_residual,
    add_rows=_add_rows,
    add_sets=_add_sets,
    renew_sets=_renew_sets,
    merge_stats=_merge_stats,
    log_marginal=_log_marginal,
    draw_leaves=_draw_leaves,
    log_likelihood=_log_likelihood,
)
