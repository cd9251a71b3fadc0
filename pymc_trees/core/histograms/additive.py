"""The histogram of any leaf model: the number of rows, and the sums of its statistics.

Statistics are sums over rows (`leaves.sums`): those of the codes up to k are sums over codes, and
the marginal likelihood of both sides of a cut follows from them.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import add_row, log_marginal, n_stats, path_below, reads_path


def histogram_layout(leaf):
    """Numbers that a histogram sums, and their dtype."""
    return 1 + n_stats(leaf), np.float64


@njit(cache=True)
def pack_rows(leaf, packed, unit):
    """Contribution of each row to a histogram."""
    one = np.empty(packed.shape[0] - 1)
    for i in range(packed.shape[1]):
        one[:] = 0.0
        add_row(leaf, i, one)
        packed[0, i] = 1.0
        for d in range(one.size):
            packed[1 + d, i] = one[d]


@njit(cache=True)
def add_to_histogram(leaf, packed, rows, start, stop, codes, subset, histogram):
    """Add rows to a histogram."""
    columns = subset.columns
    for plane in range(packed.shape[0]):
        for k in range(start, stop):
            i = rows[k]
            value = packed[plane, i]
            if value != 0.0:
                for a in range(subset.n):
                    histogram[plane, a, codes[i, columns[a]]] += value


@njit(cache=True)
def tempering(leaf, rows, start, stop):
    """Power of the likelihood for looking ahead."""
    return 1.0  # the untempered likelihood


@njit(cache=True)
def _score_column(leaf, histogram, place, n_codes, column, path, sides, gain):
    """Gains of the cuts of one column, and the log of their common factor."""
    left, right, total = sides[0], sides[1], sides[2]
    last, below = total.size - 1, path_below(leaf, path, column)
    left[:] = 0.0
    total[:] = 0.0
    n, n_left = 0.0, 0.0
    for k in range(n_codes):
        n += histogram[0, place, k]
        for d in range(total.size):
            total[d] += histogram[1 + d, place, k]
    if reads_path(leaf):
        total[last], left[last] = path, below
    log_all = log_marginal(leaf, total)
    top = 0.0
    gain[0] = 0.0
    for k in range(n_codes):
        gain[k + 1] = gain[k]
        if histogram[0, place, k] > 0.0:
            n_left += histogram[0, place, k]
            for d in range(left.size):
                left[d] += histogram[1 + d, place, k]
                right[d] = total[d] - left[d]
            if reads_path(leaf):
                right[last] = below
            gain[k + 1] = 0.0  # one side empty
            if n_left < n:
                gain[k + 1] = log_marginal(leaf, left) + log_marginal(leaf, right) - log_all
        top = max(top, gain[k + 1])
    for k in range(n_codes + 1):
        gain[k] = np.exp(max(gain[k] - top, -300.0))
    return top


@njit(cache=True)
def score_cuts(leaf, histogram, offsets, subset, power, unit, scores):
    """Marginal likelihood of the two sides of each cut between codes."""
    sides = np.empty((3, n_stats(leaf)))
    gain, log_factor, path = scores.gain, scores.log_factor, scores.path[0]
    for a in range(subset.n):
        j = subset.columns[a]
        n_codes = offsets[j + 1] - offsets[j]
        log_factor[a] = _score_column(leaf, histogram, a, n_codes, j, path, sides, gain[a])


@njit(cache=True)
def left_stats(leaf, histogram, place, k, unit, out):
    """Statistics of the rows with codes up to k."""
    out[:] = 0.0
    for code in range(k + 1):
        for d in range(histogram.shape[0] - 1):
            out[d] += histogram[1 + d, place, code]
