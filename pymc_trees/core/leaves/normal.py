"""Normal leaf value, Gaussian rows: ``r_i | mu ~ N(mu, 1/w_i)``, ``mu ~ N(mean, sd**2)``.

With ``W = sum w_i`` and ``S = sum w_i r_i`` over the rows of a leaf and ``t = 1/sd**2``,
completing the square in mu gives (Parnell 2018, eq. 1-2, for any prior mean and any weights)

    p(r) = const * sqrt(t / (t + W)) * exp((S - W mean)**2 / (t + W) / 2)
    mu | r ~ N(mean + (S - W mean) / (t + W), 1 / (t + W))

where the constant does not depend on the partition of the rows into leaves. In a sum of trees r is
the residual of the other trees (Chipman 2010, eq. 12).

If rows are Gaussian given latent variables (`latent`), target and precisions are redrawn after each
sweep.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.row_set import count_changed
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.lanes import lowest_bit, masked_product_sum, masked_sum
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.leaves.contract import add_outputs, add_set, register, subtract_outputs
from pymc_trees.core.leaves.latent.rows import LatentRows, log_rows, no_latents, redraw_latents

LANES = 8
"""Separate partial sums per leaf: an addition need not wait for the previous one."""


class NormalData(NamedTuple):
    """A normal leaf and its data."""

    mean: float
    sd: float
    r: np.ndarray
    """(n,) working residual: target minus all trees, or minus all trees but the open one."""
    w: np.ndarray
    """(n,) precision of each row, or (1,) of all rows; 0 for rows without a likelihood."""
    lanes: np.ndarray
    """(8 max_nodes,) workspace of partial sums."""
    latent: LatentRows
    """Rows with latent variables, for redrawing target and precisions, or none."""


def make_normal(mean, sd, residual, precision, max_nodes, latent=None):
    """Leaf model of a residual (used in place) and a common or a per-row precision."""
    precision = np.atleast_1d(np.asarray(precision, dtype=np.float64))
    lanes = np.zeros(max_nodes * LANES)
    latent = no_latents() if latent is None else latent
    return NormalData(float(mean), float(sd), residual, precision, lanes, latent)


@njit(cache=True)
def _n_stats(leaf):
    return 2  # W, S


@njit(cache=True)
def update_residual(r, values, old_leaf, new_leaf):
    """Close the old tree and open the new one: ``r_i += mu_new(i) - mu_old(i)``."""
    for i in range(r.size):
        r[i] += values[new_leaf[i]] - values[old_leaf[i]]


@njit(cache=True)
def update_and_sum(r, values, old_leaf, new_leaf, lanes):
    """`update_residual`, and sum the new residual in each leaf, in one pass over the rows."""
    n = r.size
    body = n - n % LANES
    for i in range(0, body, LANES):
        for lane in range(LANES):
            leaf = new_leaf[i + lane]
            r_i = r[i + lane] + (values[leaf] - values[old_leaf[i + lane]])
            r[i + lane] = r_i
            lanes[leaf * LANES + lane] += r_i
    for i in range(body, n):
        leaf = new_leaf[i]
        r[i] += values[leaf] - values[old_leaf[i]]
        lanes[leaf * LANES] += r[i]


@njit(cache=True)
def sum_weighted(r, w, leaf_of, lanes):
    """Add ``w_i`` and ``w_i r_i`` to the sums of each leaf."""
    for i in range(r.size):
        lane = leaf_of[i] * LANES
        lanes[lane] += w[i]
        lanes[lane + 1] += w[i] * r[i]


@njit(cache=True)
def clear_lanes(lanes, column, nodes, n_nodes):
    """Set the sums of the leaves of a tree to 0."""
    for k in range(n_nodes):
        if column[nodes[k]] < 0:
            first = nodes[k] * LANES
            for lane in range(LANES):
                lanes[first + lane] = 0.0


@njit(cache=True)
def write_stats(w, lanes, count, column, nodes, n_nodes, stats):
    """Write W and S of the leaves of a tree from their partial sums."""
    for k in range(n_nodes):
        node = nodes[k]
        if column[node] >= 0:
            continue
        first = node * LANES
        if w.size > 1:
            stats[node, 0] = lanes[first]
            stats[node, 1] = lanes[first + 1]
        else:
            total = 0.0
            for lane in range(LANES):
                total += lanes[first + lane]
            stats[node, 0] = w[0] * count[node]
            stats[node, 1] = w[0] * total


@njit(cache=True)
def _swap_residual(leaf, trees, old, new, nodes, n_nodes, stats):
    r, w, lanes, column = leaf.r, leaf.w, leaf.lanes, trees.column
    values = trees.values.reshape(-1)
    leaf_of = trees.leaf_of
    if new < 0:
        subtract_outputs(leaf, trees.values, leaf_of[old], r.reshape(r.size, 1))
        return
    clear_lanes(lanes, column, nodes, n_nodes)
    if old < 0:
        add_outputs(leaf, trees.values, leaf_of[new], r.reshape(r.size, 1))
    if w.size > 1:
        if old >= 0:
            update_residual(r, values, leaf_of[old], leaf_of[new])
        sum_weighted(r, w, leaf_of[new], lanes)
    elif old >= 0:
        update_and_sum(r, values, leaf_of[old], leaf_of[new], lanes)
    else:
        for i in range(r.size):
            lanes[leaf_of[new, i] * LANES] += r[i]
    write_stats(w, lanes, trees.count, column, nodes, n_nodes, stats)


@njit(cache=True)
def _add_rows(leaf, rows, start, stop, out):
    r, w = leaf.r, leaf.w
    s0, s1 = 0.0, 0.0
    if w.size == 1:
        a, b, c, d = 0.0, 0.0, 0.0, 0.0  # separate partial sums, so additions need not wait
        k = start
        while k + 4 <= stop:
            a += r[rows[k]]
            b += r[rows[k + 1]]
            c += r[rows[k + 2]]
            d += r[rows[k + 3]]
            k += 4
        while k < stop:
            a += r[rows[k]]
            k += 1
        s0 = w[0] * (stop - start)
        s1 = w[0] * (a + b + c + d)
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
    b = stats[1] - stats[0] * leaf.mean
    # Parnell 2018, eq. 1, of the rows minus the prior mean, which changes p(r) by a constant
    return 0.5 * (np.log(t / (t + stats[0])) + b * b / (t + stats[0]))


@njit(cache=True)
def conditional(leaf, stats):
    """Mean and precision of a leaf value given its rows (Parnell 2018, eq. 2)."""
    precision = 1.0 / leaf.sd**2 + stats[0]
    return leaf.mean + (stats[1] - stats[0] * leaf.mean) / precision, precision


@njit(cache=True)
def _draw_values(leaf, rng, stats, out):
    mean, precision = conditional(leaf, stats)
    out[0] = mean + rng.standard_normal() / np.sqrt(precision)


@njit(cache=True)
def _log_likelihood(leaf, trees):
    r, w = leaf.r, leaf.w
    if leaf.latent.log_rows != 0:
        return log_rows(leaf)
    total = 0.0
    for i in range(r.size):
        w_i = w[0] if w.size == 1 else w[i]
        if w_i > 0.0:
            total += 0.5 * (np.log(w_i / (2.0 * np.pi)) - w_i * r[i] * r[i])
    return total


def log_rows_about(leaf, mean) -> float:
    """Log density of Gaussian rows at the prior mean, row by row."""
    w = np.broadcast_to(leaf.w, leaf.r.shape)
    observed = w > 0.0
    z2 = w[observed] * (leaf.r - mean)[observed] ** 2
    return float(0.5 * np.sum(np.log(w[observed] / (2.0 * np.pi)) - z2))


def log_constant_about_mean(leaf) -> float:
    """The constant of p(r) above."""
    return log_rows_about(leaf, leaf.mean)


# -------------------------------------------------------- Statistics W and S of rows stored as bits
#
# With one precision for all rows, the statistics of one part of a set are those of the set minus
# those of the other part. With a precision for each row, such differences would carry rounding
# errors of the largest precisions to other leaves.


@njit(cache=True)
def add_set_of_rows(leaf, rows, out):
    """`add_rows` of a `RowSet`."""
    r, w, words = leaf.r, leaf.w, rows.words
    if w.size == 1:
        out[0] = w[0] * rows.n
        out[1] = w[0] * sum_over_set(words, rows.n, r)
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
        _write_from_sum(leaf, right, stats[1] - out_left[1], out_right)
    else:
        add_set(leaf, right, out_right)
        _write_from_sum(leaf, left, stats[1] - out_right[1], out_left)


@njit(cache=True)
def _write_from_sum(leaf, rows, total, out):
    """Write ``W = w n`` and a known S, for rows of one precision."""
    out[0] = leaf.w[0] * rows.n
    out[1] = total


@njit(cache=True)
def renew_set(leaf, rows, old, old_stats, out):
    """`add_set` of a leaf whose rows have changed."""
    if leaf.w.size > 1 or count_changed(rows.words, old) > SPARSE * old.size:
        add_set(leaf, rows, out)
    else:
        total = old_stats[1] + leaf.w[0] * change_of_sum(rows.words, old, leaf.r)
        _write_from_sum(leaf, rows, total, out)


@njit(cache=True)
def renew_sets(leaf, left, right, old, old_stats, out_left, out_right):
    """`add_set` of two leaves after an exchange of rows."""
    renew_set(leaf, left, old[0], old_stats[0], out_left)
    if leaf.w.size > 1:
        add_set(leaf, right, out_right)
    else:
        _write_from_sum(leaf, right, old_stats[0][1] + old_stats[1][1] - out_left[1], out_right)


KERNELS = {
    "n_stats": _n_stats,
    "swap_residual": _swap_residual,
    "add_rows": _add_rows,
    "log_marginal": _log_marginal,
    "draw_values": _draw_values,
    "log_likelihood": _log_likelihood,
    "log_constant": log_constant_about_mean,
    "add_set": add_set_of_rows,
    "add_sets": add_sets,
    "renew_set": renew_set,
    "renew_sets": renew_sets,
    "resample_latents": redraw_latents,
}
"""Kernels of `contract.LeafKernels`."""

register(NormalData, **KERNELS)


# ------------------------------------------------------------ Sums of x over a set of rows, as bits


_ONE = np.uint64(1)
SPARSE = 3
"""Rows per word up to which a sum visits its rows one by one."""


@njit(cache=True)
def sum_one_by_one(words, x):
    """Sum of x over a set of rows, visited one by one."""
    total = 0.0
    for w in range(words.size):
        word = words[w]
        while word != np.uint64(0):
            total += x[(w << 6) + lowest_bit(word)]
            word &= word - _ONE
    return total


@njit(cache=True)
def sum_over_set(words, n, x):
    """Sum of x over a set of n rows, by the faster method."""
    return masked_sum(words, x) if n > SPARSE * words.size else sum_one_by_one(words, x)


@njit(cache=True)
def change_of_sum(words, old, x):
    """Sum of x over a set of rows minus that over another, from the rows in which they differ."""
    total = 0.0
    for w in range(words.size):
        word = words[w] ^ old[w]
        while word != np.uint64(0):
            i = (w << 6) + lowest_bit(word)
            total += x[i] if words[w] & (word ^ (word - _ONE)) & word else -x[i]
            word &= word - _ONE
    return total


# ------------------ K independent normal values; `nonconjugate.rowwise` and `joint` hold their data


@by_pointer
class NormalVectorPrior(NamedTuple):
    """Prior of K leaf values."""

    mean: np.ndarray
    """(K,)"""
    sd: np.ndarray
    """(K,)"""


@njit(cache=True)
def _n_stats_of_vector(leaf):
    return 1


@njit(cache=True)
def _draw_values_of_vector(leaf, rng, stats, out):
    for k in range(out.size):
        out[k] = leaf.mean[k] + leaf.sd[k] * rng.standard_normal()


register(NormalVectorPrior, n_stats=_n_stats_of_vector, draw_values=_draw_values_of_vector)
