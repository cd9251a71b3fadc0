"""Leaves that hold coefficients, under any likelihood that is a product over rows.

The values of a leaf, V coefficients, make the K outputs of its rows: intercept and slopes, or the
coefficients of a basis. Given Gaussian rows, in the outputs, they integrate out: that leaf model,
`gaussian`, is the one that these leaves have under a Normal. Proposals are made under it. With
``l_i`` the log-likelihood of row i as a function of the outputs of one tree, ``l~_i`` that of its
Gaussian row, and values mu of a tree T drawn from their conditional q under the Gaussian rows,

    p(mu) / (m~(T) q(mu | T)) = exp(-sum_i l~_i(mu)),        m~(T) = int exp(sum_i l~_i) dp(mu),

whatever the prior p(mu): with m~ in place of a marginal likelihood, what corrects for it is

    exp(sum_i l_i(mu) - l~_i(mu)).

Local visits widen q: they raise the Gaussian rows to a random power (`samplers.screened_sweep`).
"""

from typing import Any, NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic
from pymc_trees.core.compile.dispatch import register as register_kernels
from pymc_trees.core.leaves.coefficients import BasisData, LinearData
from pymc_trees.core.leaves.contract import (
    add_outputs,
    draw_values,
    leaf_output,
    register,
    subtract_outputs,
)
from pymc_trees.core.leaves.nonconjugate.gaussian import (
    add_means,
    set_row_matrices,
    set_row_targets,
)
from pymc_trees.core.leaves.nonconjugate.native import call_native
from pymc_trees.core.leaves.nonconjugate.rowwise import (
    RowWorkspace,
    evaluate_rows,
    make_row_workspace,
    store_log_rows,
)
from pymc_trees.core.leaves.vector_lines import VectorLines


class CoefficientRows(NamedTuple):
    """Leaves with coefficients, and their data under a native likelihood."""

    gaussian: Any
    """Leaf model of Gaussian rows of the outputs of one tree, with the prior of the values."""
    mean: np.ndarray
    """(K,) typical prior mean of an output of one tree."""
    sd: np.ndarray
    """(K,) its sd, a scale for searches and differences."""
    value_at: int
    """Address of the log-likelihood of rows, `native`."""
    slopes_at: int
    """Address of its gradient and second derivatives in the row's own outputs."""
    table: np.ndarray
    data: np.ndarray
    offset: np.ndarray
    """(n, K) sum of the outputs of all trees, or of all but the open one."""
    log_rows: np.ndarray
    """(n,) log-likelihood of each row under the current trees."""
    work: RowWorkspace


def make_coefficient_rows(gaussian, mean, sd, addresses, numbers, offset) -> CoefficientRows:
    """Leaf model of a native likelihood, from ``value_at, slopes_at`` and ``table, data``.

    ``offset``, the sum of all trees, is used in place; of mean and sd each output has the same.
    """
    value_at, slopes_at = addresses
    table, data = numbers
    n, k = offset.shape
    mean, sd = (np.broadcast_to(np.asarray(v, dtype=np.float64), (k,)).copy() for v in (mean, sd))
    work = make_row_workspace(n, k, 1)
    return CoefficientRows(
        gaussian, mean, sd, value_at, slopes_at, table, data, offset, np.zeros(n), work
    )


# Statistics of a leaf: those of the Gaussian rows, or its V values first, which are fewer.


@njit(cache=True)
def _n_stats(leaf):
    return 1


@njit(cache=True)
def _swap_residual(leaf, trees, old, new, nodes, n_nodes, stats):
    gaussian, offset, values = leaf.gaussian, leaf.offset, trees.values
    if old >= 0:
        add_outputs(gaussian, values, trees.leaf_of[old], offset)
    else:
        evaluate_rows(leaf)
        store_log_rows(leaf)
    if new < 0:
        return
    subtract_outputs(gaussian, values, trees.leaf_of[new], offset)
    for k in range(n_nodes):
        node = nodes[k]
        if trees.column[node] < 0:
            for v in range(values.shape[1]):
                stats[node, v] = values[node, v]


@njit(cache=True)
def _draw_leaves(leaf, rng, column, values, leaf_of, nodes, n_nodes, stats):
    """Write the values of a tree after its move."""
    for k in range(n_nodes):
        node = nodes[k]
        if column[node] < 0:
            for v in range(values.shape[1]):
                values[node, v] = stats[node, v]
    add_outputs(leaf.gaussian, values, leaf_of, leaf.offset)
    evaluate_rows(leaf)
    store_log_rows(leaf)
    subtract_outputs(leaf.gaussian, values, leaf_of, leaf.offset)


@njit(cache=True)
def _log_likelihood(leaf, trees):
    return np.sum(leaf.log_rows)


register(
    CoefficientRows,
    n_stats=_n_stats,
    swap_residual=_swap_residual,
    draw_leaves=_draw_leaves,
    log_likelihood=_log_likelihood,
)


# ------------------------------------------------------ Gaussian rows of the outputs of these trees


@generic("gaussian")
def log_gaussian_row(gaussian, row, output):
    """Log of a Gaussian row at the outputs of a tree, but for a constant."""


@njit(cache=True)
def _log_row_about_target(gaussian, row, output):
    gap = gaussian.r[row] - output[0]
    return -0.5 * gaussian.w[row] * gap * gap


@njit(cache=True)
def _log_row_of_vector(gaussian, row, output):
    linear, precision = gaussian.linear, gaussian.precision
    total = 0.0
    for a in range(linear.shape[1]):
        total += linear[row, a] * output[a]
        for b in range(linear.shape[1]):
            total -= 0.5 * output[a] * precision[row, a, b] * output[b]
    return total


@njit(cache=True)
def _add_mean_of_line(gaussian, outputs):
    for i in range(outputs.shape[0]):
        outputs[i, 0] += gaussian.mean


@njit(cache=True)
def _add_mean_of_basis(gaussian, outputs):
    for i in range(outputs.shape[0]):
        outputs[i, 0] += leaf_output(gaussian, gaussian.mean, i)[0]


@njit(cache=True)
def propose_coefficients(gaussian, rng, leaf, screen, trees, n_nodes, work, is_local):
    """`gaussian.propose_values`: from the conditional under the Gaussian rows."""
    for k in range(n_nodes):
        node = work.nodes[k]
        if trees.column[node] < 0:
            draw_values(gaussian, rng, work.stats[node], trees.values[node])


@njit(cache=True)
def log_rows_of_tree(gaussian, leaf, screen, trees, tree, n_nodes, work, is_local):
    """`gaussian.log_correction`: the Gaussian rows, to be taken out."""
    values, leaf_of = trees.values, trees.leaf_of[tree]
    total = 0.0
    for i in range(leaf_of.size):
        total -= log_gaussian_row(gaussian, i, leaf_output(gaussian, values[leaf_of[i]], i))
    return total


def register_coefficients(kind, *, log_gaussian_row, set_gaussian_rows, add_prior_mean):
    """Register a leaf model of coefficients whose rows other likelihoods are approximated by."""
    register_kernels(
        kind,
        log_gaussian_row=log_gaussian_row,
        set_gaussian_rows=set_gaussian_rows,
        add_prior_mean=add_prior_mean,
        propose_values=propose_coefficients,
        log_correction=log_rows_of_tree,
    )


for one, add in ((LinearData, _add_mean_of_line), (BasisData, _add_mean_of_basis)):
    register_coefficients(
        one,
        log_gaussian_row=_log_row_about_target,
        set_gaussian_rows=set_row_targets,
        add_prior_mean=add,
    )
register_coefficients(
    VectorLines,
    log_gaussian_row=_log_row_of_vector,
    set_gaussian_rows=set_row_matrices,
    add_prior_mean=add_means,
)


# --------------------------------------------------------------- Whole trees, grown under such rows


@njit(cache=True)
def log_ratio_of_particle(leaf, gaussian, rng, particles, c, current):
    """Log of likelihood over Gaussian rows, at values drawn for a finished particle.

    The values become the first of the statistics of its leaves. Those of the reference, c = 0, are
    the first of ``current`` at its nodes.
    """
    work, offset, rows, stats = leaf.work, leaf.offset, particles.rows[c], particles.stats[c]
    n, n_outputs = offset.shape
    n_values = current.shape[1]
    values = np.empty(n_values)
    total, filled = 0.0, 0
    for k in range(particles.n_nodes[c]):
        if particles.column[c, k] >= 0:
            continue
        if c == 0:
            values[:] = current[particles.reference[k]]
        else:
            draw_values(gaussian, rng, stats[k], values)
        for v in range(n_values):
            stats[k, v] = values[v]
        for place in range(particles.start[c, k], particles.stop[c, k]):
            i = rows[place]
            output = leaf_output(gaussian, values, i)
            total -= log_gaussian_row(gaussian, i, output)
            work.rows[filled] = i
            for a in range(n_outputs):
                work.outputs[filled, a] = offset[i, a] + output[a]
            filled += 1
    call_native(leaf.value_at, n, work.rows, work.outputs, leaf.table, leaf.data, work.values)
    for i in range(n):
        total += work.values[i, 0] if work.values[i, 0] < np.inf else -np.inf  # NaN as well
    return total
