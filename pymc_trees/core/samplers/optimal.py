"""The one-step optimal proposal on binned columns (Lakshminarayanan 2013, section 3.3.1).

For a node with rows of marginal likelihood m, and column j with interval k of length l among the
``span`` that the node's bins cover, the proposal weighs

    stop           p_stop
    split (j, k)   p_split * s_j * l / span_j * G_k / m,   G_k = m(codes <= k) m(codes > k)

and draws the cut uniformly in its interval. Where code k + 1 stands for several values, cuts of
interval k part them, and the mean of ``G_k`` and ``G_{k+1}`` stands in. With all columns looked
at, all of them varying, and single-valued codes this is the optimal kernel itself; elsewhere it is
near it, and the particle's weight corrects with the rows as they fall.

A random subset A of ``n_columns`` of the p columns is looked at, drawn anew at each node. The
reference's split on column j is weighed with j and ``n_columns - 1`` others: on the space of trees
and subsets the target takes A uniform over the subsets that hold j, the proposal uniform over all,
so that a split's weight gains ``p / n_columns``.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from pymc_trees.core.forest.design import draw_cut
from pymc_trees.core.leaves.contract import add_cells, log_marginal, n_stats
from pymc_trees.core.priors.cgm import log_split, log_stop

STOP = -1


class LookAhead(NamedTuple):
    """Arrays the proposal writes to."""

    subset: np.ndarray
    """(p,) int64: a permutation of the columns; the first ``n_columns`` are looked at."""
    n_columns: int
    first: np.ndarray
    """(p,) int64: first interval of each column looked at."""
    last: np.ndarray
    """(p,) int64: end of its intervals; equal to ``first`` when it does not vary."""
    log_weight: np.ndarray
    """(p, 256) float64: log weight of each interval, by place in ``subset``."""
    counts: np.ndarray
    """(256,) int64: rows of each code."""
    cells: np.ndarray
    """(256, D) float64: their statistics."""
    gain: np.ndarray
    """(257,) float64: log ``G_k / m``."""
    sides: np.ndarray
    """(2, D) float64: statistics left and right of a cut."""


def make_look_ahead(p: int, n_columns: int, n_stats: int) -> LookAhead:
    """Room for a proposal that looks at ``n_columns`` of p columns."""
    return LookAhead(
        np.arange(p),
        n_columns,
        np.zeros(p, dtype=np.int64),
        np.zeros(p, dtype=np.int64),
        np.zeros((p, 256)),
        np.zeros(256, dtype=np.int64),
        np.zeros((256, n_stats)),
        np.zeros(257),
        np.zeros((2, n_stats)),
    )


@njit(cache=True)
def choose_columns(rng, look, known):
    """Draw the subset; it holds column ``known`` unless that is `STOP`."""
    subset = look.subset
    p = subset.size
    if look.n_columns == p:
        return
    begin = 0
    if known != STOP:
        for k in range(p):
            if subset[k] == known:
                subset[k] = subset[0]
                subset[0] = known
        begin = 1
    for k in range(begin, look.n_columns):
        other = k + min(int(rng.random() * (p - k)), p - k - 1)
        subset[k], subset[other] = subset[other], subset[k]


@njit(cache=True)
def weigh_intervals(look, bins, prior, leaf, depth, rows, start, stop, log_m, stats):
    """Fill the weights of all intervals of the chosen columns; the log of the normaliser."""
    subset, first, last, log_weight = look.subset, look.first, look.last, look.log_weight
    counts, cells, gain, sides = look.counts, look.cells, look.gain, look.sides
    edges, single, offsets, weights = bins.edges, bins.single, bins.offsets, prior.weights
    p = subset.size
    d_stats = n_stats(leaf)
    log_p = log_split(prior, depth)
    log_share = np.log(p / look.n_columns) - np.log(prior.cumulative[p - 1])
    largest = log_stop(prior, depth, False)
    for place in range(look.n_columns):
        j = subset[place]
        first[place], last[place] = 0, 0
        offset = offsets[j]
        n_codes = offsets[j + 1] - offset
        if n_codes < 2 or weights[j] <= 0.0:
            continue
        for b in range(n_codes):
            counts[b] = 0
            for d in range(d_stats):
                cells[b, d] = 0.0
        add_cells(leaf, rows, start, stop, bins.codes[j], counts, cells)
        low = 0
        while counts[low] == 0:
            low += 1
        high = n_codes - 1
        while counts[high] == 0:
            high -= 1
        begin = low if single[offset + low] else low - 1
        if begin >= high:
            continue
        # gain[k + 1] is log G_k / m; G is m where one side is empty
        gain[begin] = 0.0
        gain[high + 1] = 0.0
        for d in range(d_stats):
            sides[0, d] = 0.0
            sides[1, d] = stats[d]
        for k in range(begin, high):
            if k >= 0 and counts[k] > 0:
                for d in range(d_stats):
                    sides[0, d] += cells[k, d]
                    sides[1, d] = stats[d] - sides[0, d]
                gain[k + 1] = log_marginal(leaf, sides[0]) + log_marginal(leaf, sides[1]) - log_m
            else:
                gain[k + 1] = gain[k] if k > begin else 0.0
        base = log_p + log_share + np.log(weights[j])
        base -= np.log(edges[offset + high] - edges[offset + begin])
        for k in range(begin, high):
            g = gain[k + 1]
            if not single[offset + k + 1]:
                g2 = gain[k + 2]
                top = max(g, g2)
                g = top + np.log(0.5 * (np.exp(g - top) + np.exp(g2 - top)))
            w = base + np.log(edges[offset + k + 1] - edges[offset + k]) + g
            log_weight[place, k] = w
            largest = max(largest, w)
        first[place], last[place] = begin, high
    total = np.exp(log_stop(prior, depth, False) - largest)
    for place in range(look.n_columns):
        for k in range(first[place], last[place]):
            total += np.exp(log_weight[place, k] - largest)
    return largest + np.log(total)


@njit(cache=True)
def draw_optimal(rng, look, design, bins, prior, depth, log_total):
    """Draw from the weights just filled: column (`STOP` for a leaf), cut, log probability.

    The log probability of a split is less the log of the subset's factor ``p / n_columns``.
    """
    subset, first, last, log_weight = look.subset, look.first, look.last, look.log_weight
    edges, offsets = bins.edges, bins.offsets
    stop = log_stop(prior, depth, False)
    u = rng.random() - np.exp(stop - log_total)
    if u < 0.0:
        return STOP, 0.0, stop - log_total
    chosen_place, chosen = -1, -1
    for place in range(look.n_columns):
        for k in range(first[place], last[place]):
            chosen_place, chosen = place, k
            u -= np.exp(log_weight[place, k] - log_total)
            if u < 0.0:
                break
        if u < 0.0:
            break
    if chosen < 0:  # rounding, with nothing to split
        return STOP, 0.0, stop - log_total
    j = subset[chosen_place]
    low, high = edges[offsets[j] + chosen], edges[offsets[j] + chosen + 1]
    cut = draw_cut(rng, design, low, high)
    log_q = log_weight[chosen_place, chosen] - np.log(high - low) - log_total
    return j, cut, log_q - np.log(subset.size / look.n_columns)


@njit(cache=True)
def log_q_optimal(look, bins, prior, depth, log_total, column, cut):
    """Log probability of a known outcome under the weights just filled, as `draw_optimal` gives."""
    if column == STOP:
        return log_stop(prior, depth, False) - log_total
    subset, offsets = look.subset, bins.offsets
    for place in range(look.n_columns):
        if subset[place] == column:
            edges = bins.edges[offsets[column] : offsets[column + 1]]
            k = np.searchsorted(edges, cut, side="right") - 1
            log_q = look.log_weight[place, k] - np.log(edges[k + 1] - edges[k]) - log_total
            return log_q - np.log(subset.size / look.n_columns)
    return -np.inf
