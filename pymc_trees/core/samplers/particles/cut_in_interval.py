"""Where in an interval between two edges the cut of the optimal proposal falls.

A cut of interval k, ``[e_k, e_{k+1})``, sends the codes up to k to the left. When code k + 1 stands
for several values, its rows in the node, ``x_1 <= .. <= x_q``, part the interval further: between
``x_s`` and ``x_{s+1}`` the cut is weighed by the distance times the marginal likelihoods of both
sides, s of these rows on the left; cuts with an empty side are left out. This costs a look at the
codes of the node's rows and a sort of q.
"""

import numpy as np

from pymc_trees.core.columns.design import draw_cut
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.histograms.contract import prefix_stats
from pymc_trees.core.leaves.contract import add_rows, log_marginal


@njit(cache=True)
def _sorted(cells, rows, q):
    """Cells of ``rows[:q]``, and the order that sorts them."""
    values = np.empty(q)
    for r in range(q):
        values[r] = cells[rows[r]]
    if q > 64:
        return values, np.argsort(values)
    order = np.arange(q)
    for r in range(1, q):
        place = r
        while place > 0 and values[order[place - 1]] > values[r]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = r
    return values, order


@njit(cache=True)
def cut_in_interval(
    rng, design, bins, leaf, cells, unit, place, column, k, rows, start, stop, stats, spare, known
):
    """Draw a cut in an interval, or weigh a known one.

    Parameters
    ----------
    cells : (D, p, B) array
        Table of the node.
    stats : (S,) float64
        Statistics of the node's rows.
    known : float
        Cut to weigh; NaN to draw one.

    Returns
    -------
    cut, log_q : float
        Cut, and log of its density (for a grid: probability).
    """
    offset = bins.offsets[column]
    low, high = bins.edges[offset + k], bins.edges[offset + k + 1]
    draws = np.isnan(known)
    if bins.single[offset + k + 1]:
        return draw_cut(rng, design, low, high) if draws else known, -np.log(high - low)
    codes, columns, code = bins.codes, design.columns, k + 1
    q = 0
    for r in range(start, stop):
        i = rows[r]
        spare[q] = i
        q += codes[i, column] == code
    values, order = _sorted(columns[column], spare, q)
    sides = np.empty((3, stats.size))
    left, right, one = sides[0], sides[1], sides[2]
    prefix_stats(leaf, cells, place, k, unit, left)
    below = 0
    for b in range(code):
        below += cells[0, place, b] != 0
    above = 0
    for b in range(code + 1, bins.offsets[column + 1] - offset):
        above += cells[0, place, b] != 0
    log_w = np.full(q + 1, -np.inf)
    largest = -np.inf
    for s in range(q + 1):
        begin = low if s == 0 else values[order[s - 1]]
        end = high if s == q else values[order[s]]
        if s > 0:
            row = order[s - 1]
            add_rows(leaf, spare, row, row + 1, one)
            for d in range(left.size):
                left[d] += one[d]
        if end > begin and (s > 0 or below > 0) and (s < q or above > 0):
            for d in range(left.size):
                right[d] = stats[d] - left[d]
            log_w[s] = np.log(end - begin) + log_marginal(leaf, left) + log_marginal(leaf, right)
            largest = max(largest, log_w[s])
    if largest == -np.inf:  # every cut here leaves a side empty: the particle will see
        return low, -np.log(high - low)
    total = 0.0
    for s in range(q + 1):
        total += np.exp(log_w[s] - largest)
    chosen = -1
    if draws:
        target = rng.random() * total
        for s in range(q + 1):
            if log_w[s] > -np.inf:
                chosen = s
                target -= np.exp(log_w[s] - largest)
                if target < 0.0:
                    break
    else:
        chosen = 0
        while chosen < q and values[order[chosen]] <= known:
            chosen += 1
    begin = low if chosen == 0 else values[order[chosen - 1]]
    end = high if chosen == q else values[order[chosen]]
    cut = draw_cut(rng, design, begin, end) if draws else known
    return cut, log_w[chosen] - largest - np.log(total) - np.log(end - begin)
