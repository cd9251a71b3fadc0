"""Position of the cut of the optimal proposal within an interval between two edges.

A cut of interval k, ``[e_k, e_{k+1})``, sends the codes up to k to the left. If code k + 1 stands
for several values, its rows in the node, ``x_1 <= .. <= x_q``, divide the interval further: a cut
between ``x_s`` and ``x_{s+1}`` has a weight of the distance times the marginal likelihoods of both
sides, with s of these rows on the left; cuts with an empty side are left out. This costs one pass
over the codes of the node's rows and a sort of q numbers.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.design import draw_cut, write_cells
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.histograms.contract import left_stats
from pymc_trees.core.leaves.contract import add_rows, log_marginal
from pymc_trees.core.leaves.path import extend_path
from pymc_trees.core.random import draw_by_weight

FEW = 64
"""Numbers that are sorted by insertion, which is Shell's sort with one gap."""


@njit(cache=True)
def order_of(values):
    """Order in which numbers increase, by Shell's sort; numba's own takes 3 s to compile."""
    order, gap = np.arange(values.size), 1
    while values.size > FEW and 3 * gap < values.size:
        gap = 3 * gap + 1
    while gap > 0:
        for r in range(gap, values.size):
            one, place = order[r], r
            while place >= gap and values[order[place - gap]] > values[one]:
                order[place] = order[place - gap]
                place -= gap
            order[place] = one
        gap //= 3
    return order


class Interval(NamedTuple):
    """An interval between two edges of a candidate column."""

    place: int
    """Index of the column among the candidates."""
    column: int
    k: int
    """The interval is ``[e_k, e_{k+1})``."""


@njit(cache=True)
def cut_in_interval(rng, problem, growth, at, histogram, interval, stats, known):
    """Draw a cut in an interval, or evaluate the density of a given one.

    Parameters
    ----------
    at : NodeRows
        The node.
    histogram : (D, p, B) array
        Of the node.
    interval : Interval
        Interval of the cut.
    stats : (S,) float64
        Statistics of the node's rows.
    known : float
        Given cut; NaN to draw one.

    Returns
    -------
    cut, log_q : float
        Cut, and log of its density (for a grid: probability).
    """
    bins, design, column = growth.bins, problem.design, interval.column
    offset, code = bins.offsets[column], interval.k + 1
    low, high = bins.edges[offset + code - 1], bins.edges[offset + code]
    draws = np.isnan(known)
    if bins.single[offset + code]:
        return draw_cut(rng, design, low, high) if draws else known, -np.log(high - low)
    codes, rows, inside = bins.codes, at.rows, growth.buffer
    q = 0
    for r in range(at.start, at.stop):
        i = rows[r]
        inside[q] = i
        q += codes[i, column] == code
    values = np.empty(q)
    write_cells(design, column, inside, 0, q, values)
    order = order_of(values)
    edges = np.empty(q + 2)
    edges[0], edges[q + 1] = low, high
    for s in range(q):
        edges[s + 1] = values[order[s]]
    log_w = _weigh_parts(problem, growth, histogram, interval, stats, order, edges)
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
        while chosen < q and values[order[chosen]] <= known:
            chosen += 1
    begin, end = edges[chosen], edges[chosen + 1]
    cut = draw_cut(rng, design, begin, end) if draws else known
    return cut, log_w[chosen] - largest - np.log(total) - np.log(end - begin)


@njit(cache=True)
def _weigh_parts(problem, growth, histogram, interval, stats, order, edges):
    """Log weights of the parts of an interval between ``edges``, whose rows are in the buffer."""
    leaf, design = problem.leaf, problem.design
    place, code, bins = interval.place, interval.k + 1, growth.bins
    offset = bins.offsets[interval.column]
    n_codes = bins.offsets[interval.column + 1] - offset
    unit, q = growth.look.histograms.unit, order.size
    sides = np.empty((3, stats.size))
    left, right, one = sides[0], sides[1], sides[2]
    left_stats(leaf, histogram, place, interval.k, unit, left)
    below, above = 0, 0
    for b in range(code):
        below += histogram[0, place, b] != 0
    for b in range(code + 1, n_codes):
        above += histogram[0, place, b] != 0
    log_w = np.full(q + 1, -np.inf)
    for s in range(q + 1):
        if s > 0:
            row = order[s - 1]
            add_rows(leaf, growth.buffer, row, row + 1, one)
            for d in range(left.size):
                left[d] += one[d]
        length = edges[s + 1] - edges[s]
        if length > 0.0 and (s > 0 or below > 0) and (s < q or above > 0):
            for d in range(left.size):
                right[d] = stats[d] - left[d]
            extend_path(leaf, design, stats, interval.column, left)
            extend_path(leaf, design, stats, interval.column, right)
            log_w[s] = np.log(length) + log_marginal(leaf, left) + log_marginal(leaf, right)
    return log_w
