"""The one-step optimal proposal on binned columns (Lakshminarayanan 2013, section 3.3.1).

For a node with rows of marginal likelihood m, and column j with interval k of length l among the
``span`` that the node's codes cover, the proposal weighs

    stop           p_stop
    split (j, k)   p_split * s_j / sum(s) * l / span_j * G_k / m,   G_k = m(codes <= k) m(codes > k)

with the sum over the columns that vary, and draws the cut in its interval (`cut_in_interval`). If
code k + 1 stands for several values, cuts of interval k divide them, and the mean of ``G_k`` and
``G_{k+1}`` is used. With single-valued codes this is the optimal kernel itself; otherwise it is an
approximation, and the particle's weight corrects for it with the actual partition. With a normal
leaf, ``G_k`` takes the precision of the node's rows about their mean where the noise is smaller
(`histograms.normal`): an incomplete tree leaves more than the noise unexplained.

With many columns a random subset A of candidates is used: those on which the current tree splits,
and each other column with probability ``share``. On the space of trees and subsets the target is
the posterior times ``share**(|A| - u) (1 - share)**(p - |A|)`` for the u columns of the tree, all
of them in A. Given A, a split on a column that is new to the tree therefore has ``1 / share`` times
the weight.
"""

from typing import NamedTuple

import numpy as np
from numba import int64

from pymc_trees.core.columns.design import Design, column_varies, draw_cut, write_cells
from pymc_trees.core.columns.mixed import DESIGN, MixedDesign, column_of, rule_from_prior
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register
from pymc_trees.core.compile.handle import LIST
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.forest.trees import preorder
from pymc_trees.core.histograms.cache import Histograms, make_histograms
from pymc_trees.core.histograms.contract import (
    VECTORISE,
    Bins,
    ColumnSubset,
    CutScores,
    left_stats,
    score_cuts,
)
from pymc_trees.core.leaves.contract import add_rows, log_marginal
from pymc_trees.core.leaves.path import extend_path
from pymc_trees.core.priors.contract import column_weight, log_split, log_stop, split_weight
from pymc_trees.core.random import draw_by_weight

# ---------------- Position of the cut of the optimal proposal within an interval between two edges
#
# A cut of interval k, ``[e_k, e_{k+1})``, sends the codes up to k to the left. If code k + 1
# stands for several values, its rows in the node, ``x_1 <= .. <= x_q``, divide the interval
# further: a cut between ``x_s`` and ``x_{s+1}`` has a weight of the distance times the marginal
# likelihoods of both sides, with s of these rows on the left; cuts with an empty side are left
# out. This costs one pass over the codes of the node's rows and a sort of q numbers.


INSERTION_SORT_MAX = 64
"""Numbers that are sorted by insertion, which is Shell's sort with one gap."""


@njit(cache=True)
def argsort(values):
    """Indices that sort numbers, by Shell's sort; numba's own takes 3 s to compile."""
    order, gap = np.arange(values.size), 1
    while values.size > INSERTION_SORT_MAX and 3 * gap < values.size:
        gap = 3 * gap + 1
    while gap > 0:
        for r in range(gap, values.size):
            moving, position = order[r], r
            while position >= gap and values[order[position - gap]] > values[moving]:
                order[position] = order[position - gap]
                position -= gap
            order[position] = moving
        gap //= 3
    return order


class Interval(NamedTuple):
    """An interval between two edges of a candidate column."""

    position: int
    """Index of the column among the candidates."""
    column: int
    k: int
    """The interval is ``[e_k, e_{k+1})``."""


@njit(cache=True)
def cut_in_interval(rng, problem, growth, node_rows, histogram, interval, stats, reference_cut):
    """Draw a cut in an interval, or evaluate the density of a given cut.

    Parameters
    ----------
    node_rows : NodeRows
        The node.
    histogram : (D, p, B) array
        Of the node.
    interval : Interval
        Interval of the cut.
    stats : (S,) float64
        Statistics of the node's rows.
    reference_cut : float
        Given cut; NaN to draw one.

    Returns
    -------
    cut, log_q : float
        Cut, and log of its density (for a grid: probability).
    """
    bins, design, column = growth.bins, problem.design, interval.column
    offset, code = bins.offsets[column], interval.k + 1
    low, high = bins.edges[offset + code - 1], bins.edges[offset + code]
    draws = np.isnan(reference_cut)
    if bins.single[offset + code]:
        return draw_cut(rng, design, low, high) if draws else reference_cut, -np.log(high - low)
    codes, rows, inside = bins.codes, node_rows.rows, growth.buffer
    q = 0
    for r in range(node_rows.start, node_rows.stop):
        i = rows[r]
        inside[q] = i
        q += codes[i, column] == code
    values = np.empty(q)
    write_cells(design, column, inside, 0, q, values)
    order = argsort(values)
    edges = np.empty(q + 2)
    edges[0], edges[q + 1] = low, high
    for s in range(q):
        edges[s + 1] = values[order[s]]
    log_w = _log_part_weights(problem, growth, histogram, interval, stats, order, edges)
    largest = log_w.max()
    if largest == -np.inf:  # every cut here leaves a side empty: the particle gets weight 0
        return low, -np.log(high - low)
    total = 0.0
    weights = np.exp(log_w - largest)
    for s in range(q + 1):
        total += weights[s]
    if draws:
        chosen = draw_by_weight(weights, 0, q + 1, rng.random() * total)
    else:
        chosen = 0
        while chosen < q and values[order[chosen]] <= reference_cut:
            chosen += 1
    begin, end = edges[chosen], edges[chosen + 1]
    cut = draw_cut(rng, design, begin, end) if draws else reference_cut
    return cut, log_w[chosen] - largest - np.log(total) - np.log(end - begin)


@njit(cache=True)
def _log_part_weights(problem, growth, histogram, interval, stats, order, edges):
    """Log weights of the parts of an interval between ``edges``, whose rows are in the buffer."""
    leaf, design = problem.leaf, problem.design
    position, code, bins = interval.position, interval.k + 1, growth.bins
    offset = bins.offsets[interval.column]
    n_codes = bins.offsets[interval.column + 1] - offset
    unit, q = growth.look_ahead.histograms.unit, order.size
    sides = np.empty((3, stats.size))
    left, right, row_stats = sides[0], sides[1], sides[2]
    left_stats(leaf, histogram, position, interval.k, unit, left)
    below, above = 0, 0
    for b in range(code):
        below += histogram[0, position, b] != 0
    for b in range(code + 1, n_codes):
        above += histogram[0, position, b] != 0
    log_w = np.full(q + 1, -np.inf)
    for s in range(q + 1):
        if s > 0:
            row = order[s - 1]
            add_rows(leaf, growth.buffer, row, row + 1, row_stats)
            for d in range(left.size):
                left[d] += row_stats[d]
        length = edges[s + 1] - edges[s]
        if length > 0.0 and (s > 0 or below > 0) and (s < q or above > 0):
            for d in range(left.size):
                right[d] = stats[d] - left[d]
            extend_path(leaf, design, stats, interval.column, left)
            extend_path(leaf, design, stats, interval.column, right)
            log_w[s] = np.log(length) + log_marginal(leaf, left) + log_marginal(leaf, right)
    return log_w


# --------------------------------------------------------------------------------------------------


STOP = -1


@by_pointer
class LookAhead(NamedTuple):
    """Workspace of the proposal."""

    share: float
    """Probability that a column not used by the tree is a candidate."""
    columns: np.ndarray
    """(p,) int64: columns, candidates first."""
    n_columns: np.ndarray
    """(1,) int64: number of candidates."""
    used: np.ndarray
    """(p,) bool: columns a tree splits on."""
    from_prior: np.ndarray
    """(p,) bool: the column varies in the node, and its rule is drawn from the prior."""
    first: np.ndarray
    """(p,) int64: first interval of each candidate column."""
    last: np.ndarray
    """(p,) int64: end of its intervals; equal to ``first`` when it does not vary."""
    weight: np.ndarray
    """(p, 256) float64: weights of the intervals of a column, by index in ``columns``."""
    total: np.ndarray
    """(p,) float64: their sums."""
    log_mass: np.ndarray
    """(p,) float64: log weight of each column."""
    scores: CutScores
    root: np.ndarray
    """(1,) float64: log normaliser while the weights are those of the root, else NaN."""
    histograms: Histograms


def make_look_ahead(leaf, bins: Bins, n_particles: int, max_nodes: int, share=1.0) -> LookAhead:
    """Workspace of a proposal with a share of candidate columns for each of ``n_particles``."""
    p = bins.codes.shape[1]
    return LookAhead(
        float(share),
        np.arange(p),
        np.array([p]),
        np.zeros(p, dtype=np.bool_),
        np.zeros(p, dtype=np.bool_),
        np.zeros(p, dtype=np.int64),
        np.zeros(p, dtype=np.int64),
        np.zeros((p, 256)),
        np.zeros(p),
        np.zeros(p),
        CutScores(np.zeros((3, 257)), np.zeros((p, 258)), np.zeros(p), np.zeros(1)),
        np.full(1, np.nan),
        make_histograms(leaf, bins, n_particles, max_nodes),
    )


@njit(cache=True)
def candidate_columns(look_ahead):
    """The candidate columns."""
    return ColumnSubset(look_ahead.columns, look_ahead.n_columns[0])


@njit(cache=True)
def draw_candidates(rng, look_ahead, design, trees, tree, nodes):
    """Draw the candidate columns, given the current tree."""
    if look_ahead.share >= 1.0:
        return
    look_ahead.used[:] = False
    for k in range(preorder(trees, trees.roots[tree], nodes)):
        code = trees.column[nodes[k]]
        if code >= 0:
            look_ahead.used[column_of(design, code)] = True
    n = 0
    for j in range(look_ahead.used.size):
        if look_ahead.used[j] or rng.random() < look_ahead.share:
            look_ahead.columns[n] = j
            n += 1
    look_ahead.n_columns[0] = n


@njit(cache=True)
def mark_used(look_ahead, design, particles, c):
    """Mark the columns that a particle splits on."""
    if look_ahead.share >= 1.0:
        return
    look_ahead.used[:] = False
    for k in range(particles.n_nodes[c]):
        code = particles.column[c, k]
        if code >= 0:
            look_ahead.used[column_of(design, code)] = True


@njit(cache=True)
def log_new_column(look_ahead, column):
    """Log factor of the target for a split on a column, given the candidate columns."""
    if look_ahead.share >= 1.0 or look_ahead.used[column]:
        return 0.0
    return -np.log(look_ahead.share)


@generic("design", args=(LookAhead, DESIGN, LIST, int64, int64), result=None)
def mark_from_prior(look_ahead, design, rows, start, stop):
    """Mark candidate columns that vary in a node and whose rules come from the prior."""


@njit(cache=True)
def _mark_none(look_ahead, design, rows, start, stop):
    pass


@njit(cache=True)
def _mark_from_prior(look_ahead, design, rows, start, stop):
    """These have levels or missing cells; their rules are not evaluated one step ahead."""
    for a in range(look_ahead.n_columns[0]):
        j = look_ahead.columns[a]
        look_ahead.from_prior[a] = rule_from_prior(design, j) and column_varies(
            design, j, rows, start, stop
        )


register(Design, mark_from_prior=_mark_none)
register(MixedDesign, mark_from_prior=_mark_from_prior)


@njit(cache=True, **VECTORISE)
def _interval_weights(look_ahead, bins, a, offset, begin, end):
    """Weights of the intervals of a column, and their sum."""
    lengths, ahead, gain, weight = (
        bins.lengths,
        bins.ahead,
        look_ahead.scores.gain,
        look_ahead.weight,
    )
    for k in range(begin, end):
        h = ahead[offset + k]
        weight[a, k] = lengths[offset + k] * ((1.0 - h) * gain[a, k + 1] + h * gain[a, k + 2])
    return _sum_by_four(weight[a], begin, end)


@njit(cache=True)
def _sum_by_four(x, begin, end):
    """Sum of x[begin:end], in an order in which four additions need not wait for each other."""
    s, t, u, v = 0.0, 0.0, 0.0, 0.0
    last = begin + (end - begin) // 4 * 4
    for k in range(begin, last, 4):
        s, t, u, v = s + x[k], t + x[k + 1], u + x[k + 2], v + x[k + 3]
    for k in range(last, end):
        s += x[k]
    return (s + t) + (u + v)


@njit(cache=True)
def _interval_range(histogram, position, single, offset, n_codes):
    """First and end of the intervals between codes that have rows; equal when there are none."""
    low, high = 0, n_codes - 1
    while low < high and histogram[0, position, low] == 0:
        low += 1
    while low < high and histogram[0, position, high] == 0:
        high -= 1
    begin = low if single[offset + low] else low - 1
    return min(begin, high), high


@njit(cache=True)
def weigh_splits(look_ahead, bins, prior, leaf, histogram, context, power):
    """Fill the weights of all intervals of the candidate columns; log of the normaliser.

    Parameters
    ----------
    histogram : (D, p, B) array
        Of the node.
    power : float
        Of the likelihood, from `tempering`.
    """
    unit, scores, n = look_ahead.histograms.unit, look_ahead.scores, look_ahead.n_columns[0]
    score_cuts(leaf, histogram, bins.offsets, candidate_columns(look_ahead), power, unit, scores)
    total_weight = 0.0
    largest = -np.inf
    for a in range(n):
        j = look_ahead.columns[a]
        s_j = split_weight(prior, j)
        look_ahead.first[a], look_ahead.last[a] = 0, 0
        p_candidate = look_ahead.share if look_ahead.share < 1.0 and not look_ahead.used[j] else 1.0
        if (
            look_ahead.from_prior[a] and s_j > 0.0
        ):  # one interval, with the marginal likelihood as it is
            s_j /= p_candidate
            look_ahead.last[a] = 1
            look_ahead.weight[a, 0], look_ahead.total[a], look_ahead.log_mass[a] = (
                1.0,
                1.0,
                np.log(s_j),
            )
            total_weight += s_j
            largest = max(largest, look_ahead.log_mass[a])
            continue
        offset = bins.offsets[j]
        n_codes = bins.offsets[j + 1] - offset
        if n_codes < 2 or s_j <= 0.0:
            continue
        begin, high = _interval_range(histogram, a, bins.single, offset, n_codes)
        if begin >= high:
            continue
        look_ahead.first[a], look_ahead.last[a] = begin, high
        total = _interval_weights(look_ahead, bins, a, offset, begin, high)
        look_ahead.total[a] = total
        span = bins.edges[offset + high] - bins.edges[offset + begin]
        s_j = column_weight(prior, j, span) / p_candidate
        total_weight += s_j
        look_ahead.log_mass[a] = scores.log_factor[a] + np.log(s_j * total / span)
        largest = max(largest, look_ahead.log_mass[a])
    log_p_stop = log_stop(prior, context)
    if total_weight == 0.0:
        return log_p_stop
    log_p = log_split(prior, context) - np.log(total_weight)
    largest = max(largest + log_p, log_p_stop)
    total_p = np.exp(log_p_stop - largest)
    for a in range(n):
        if look_ahead.last[a] > look_ahead.first[a]:
            look_ahead.log_mass[a] += log_p
            total_p += np.exp(look_ahead.log_mass[a] - largest)
    return largest + np.log(total_p)


@njit(cache=True)
def draw_interval(rng, look_ahead, prior, context, log_total):
    """Draw from the weights just filled: index of the column or `STOP`, interval, log q."""
    log_p_stop = log_stop(prior, context)
    u = rng.random() - np.exp(log_p_stop - log_total)
    chosen = STOP
    if u >= 0.0:
        for a in range(look_ahead.n_columns[0]):
            if look_ahead.last[a] > look_ahead.first[a]:
                chosen = a
                u -= np.exp(look_ahead.log_mass[a] - log_total)
                if u < 0.0:
                    break
    if chosen == STOP:  # or rounding, with nothing to split
        return STOP, 0, log_p_stop - log_total
    point = rng.random() * look_ahead.total[chosen]
    k = draw_by_weight(
        look_ahead.weight[chosen], look_ahead.first[chosen], look_ahead.last[chosen], point
    )
    return chosen, k, _log_q(look_ahead, chosen, k, log_total)


@njit(cache=True)
def _log_q(look_ahead, a, k, log_total):
    return (
        look_ahead.log_mass[a] - log_total + np.log(look_ahead.weight[a, k] / look_ahead.total[a])
    )


@njit(cache=True)
def find_interval(look_ahead, bins, prior, context, log_total, column, cut):
    """As `draw_interval`, for a given outcome."""
    if column == STOP:
        return STOP, 0, log_stop(prior, context) - log_total
    for a in range(look_ahead.n_columns[0]):
        if look_ahead.columns[a] == column and look_ahead.from_prior[a]:
            return a, 0, _log_q(look_ahead, a, 0, log_total)
        if look_ahead.columns[a] == column:
            edges = bins.edges[bins.offsets[column] : bins.offsets[column + 1]]
            k = np.searchsorted(edges, cut, side="right") - 1
            return a, k, _log_q(look_ahead, a, k, log_total)
    return STOP, 0, -np.inf
