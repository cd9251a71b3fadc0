"""Normal leaf value, Gaussian rows: ``r_i | mu ~ N(mu, 1/w_i)``, ``mu ~ N(mean, sd**2)``.

With ``W = sum w_i`` and ``S = sum w_i r_i`` over the rows of a leaf and ``t = 1/sd**2``,
completing the square in mu gives (Parnell 2018, eq. 1-2, for any prior mean and any weights)

    p(r) = const * sqrt(t / (t + W)) * exp(((t mean + S)**2 / (t + W) - t mean**2) / 2)
    mu | r ~ N((t mean + S) / (t + W), 1 / (t + W))

where the constant does not depend on how the rows are shared out among leaves. In a sum of trees
r is the residual of the other trees (Chipman 2010, eq. 12).
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from pymc_trees.core.leaves.contract import register

_LANES = 4


class NormalData(NamedTuple):
    """A normal leaf and the rows it sees."""

    mean: float
    sd: float
    r: np.ndarray
    """(n,) working residual: target minus all trees, or minus all trees but the open one."""
    w: np.ndarray
    """(n,) precision of each row, or (1,) of all rows; 0 for rows without a likelihood."""
    lanes: np.ndarray
    """(2, 4, max_nodes) room for sums kept apart, so that additions need not wait."""


def make_normal(mean, sd, residual, precision, max_nodes):
    """Leaf model of a residual (used in place) and a common or a per-row precision."""
    precision = np.atleast_1d(np.asarray(precision, dtype=np.float64))
    return NormalData(float(mean), float(sd), residual, precision, np.zeros((2, _LANES, max_nodes)))


@njit(cache=True)
def _n_stats(leaf):
    return 2  # W, S


@njit(cache=True)
def _next_tree(leaf, trees, old, new, nodes, n_nodes, stats):
    r, w, values, lanes = leaf.r, leaf.w, trees.values, leaf.lanes
    n = r.size
    if old >= 0 and new < 0:
        old_leaf = trees.leaf_of[old]
        for i in range(n):
            r[i] -= values[old_leaf[i], 0]
        return
    new_leaf = trees.leaf_of[new]
    for k in range(n_nodes):
        lanes[:, :, nodes[k]] = 0.0
    common = w.size == 1
    if old < 0:
        for i in range(n):
            r[i] += values[new_leaf[i], 0]
            lanes[0, i % _LANES, new_leaf[i]] += r[i] if common else w[i] * r[i]
    else:
        # One pass closes the old tree, opens the new one and adds up its leaves.
        old_leaf = trees.leaf_of[old]
        if common:
            for i in range(n):
                leaf_i = new_leaf[i]
                r_i = r[i] + (values[leaf_i, 0] - values[old_leaf[i], 0])
                r[i] = r_i
                lanes[0, i % _LANES, leaf_i] += r_i
        else:
            for i in range(n):
                leaf_i = new_leaf[i]
                r_i = r[i] + (values[leaf_i, 0] - values[old_leaf[i], 0])
                r[i] = r_i
                lanes[0, i % _LANES, leaf_i] += w[i] * r_i
    if not common:
        for i in range(n):
            lanes[1, i % _LANES, new_leaf[i]] += w[i]
    for k in range(n_nodes):
        node = nodes[k]
        total = lanes[0, 0, node] + lanes[0, 1, node] + lanes[0, 2, node] + lanes[0, 3, node]
        if common:
            stats[node, 0] = w[0] * trees.count[node]
            stats[node, 1] = w[0] * total
        else:
            stats[node, 0] = (
                lanes[1, 0, node] + lanes[1, 1, node] + lanes[1, 2, node] + lanes[1, 3, node]
            )
            stats[node, 1] = total


@njit(cache=True)
def _add_rows(leaf, rows, start, stop, out):
    r, w = leaf.r, leaf.w
    s0, s1 = 0.0, 0.0
    if w.size == 1:
        for k in range(start, stop):
            s1 += r[rows[k]]
        s0 = w[0] * (stop - start)
        s1 *= w[0]
    else:
        for k in range(start, stop):
            i = rows[k]
            s0 += w[i]
            s1 += w[i] * r[i]
    out[0] = s0
    out[1] = s1


@njit(cache=True)
def _log_marginal(leaf, stats):
    t = 1.0 / leaf.sd**2
    b = t * leaf.mean + stats[1]
    # Parnell2018 (1), one leaf
    return 0.5 * (np.log(t / (t + stats[0])) + b * b / (t + stats[0]) - t * leaf.mean**2)


@njit(cache=True)
def _draw_values(leaf, rng, stats, out):
    t = 1.0 / leaf.sd**2
    precision = t + stats[0]
    # Parnell2018 (2)
    out[0] = (t * leaf.mean + stats[1]) / precision + rng.standard_normal() / np.sqrt(precision)


@njit(cache=True)
def _log_likelihood(leaf, trees):
    r, w = leaf.r, leaf.w
    total = 0.0
    for i in range(r.size):
        w_i = w[0] if w.size == 1 else w[i]
        if w_i > 0.0:
            total += 0.5 * (np.log(w_i / (2.0 * np.pi)) - w_i * r[i] * r[i])
    return total


register(
    NormalData,
    n_stats=_n_stats,
    next_tree=_next_tree,
    add_rows=_add_rows,
    log_marginal=_log_marginal,
    draw_values=_draw_values,
    log_likelihood=_log_likelihood,
)
