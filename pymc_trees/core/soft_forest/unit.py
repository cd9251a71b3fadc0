"""Columns mapped to [0, 1] by the training rows, so that one bandwidth suits them all.

A column goes through its empirical distribution function (Linero and Yang 2018, section 3.1), with
tied rows at the middle of their step, scaled so that the smallest training value is 0 and the
largest 1. It is linear between two values, and 0 or 1 beyond them; a constant column is 0. The map
uses as few equidistant quantiles as the data allow, because the steps of the empirical function are
noise, which would make a smooth f rough.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer

BAND = 1.36
"""Times ``n**-0.5``, the largest distance of the map from the empirical distribution function.

A sample of n rows exceeds this distance from its true distribution with probability 0.05
(Kolmogorov).
"""


@by_pointer
class UnitMap(NamedTuple):
    """The map of p columns."""

    knots: np.ndarray
    """Distinct training values or quantiles of each column in order, one column after another."""
    heights: np.ndarray
    """Their images."""
    offsets: np.ndarray
    """(p + 1,) int64: where the knots of each column begin."""


def make_unit_map(X: np.ndarray) -> UnitMap:
    """The map by (n, p) training rows."""
    knots, heights = [], []
    for column in X.T:
        values, counts = np.unique(column, return_counts=True)
        middle = np.cumsum(counts) - 0.5 * counts
        middle -= middle[0]
        if len(values) > 1:
            middle /= middle[-1]
        values, middle = _fewest_quantiles(values, middle, BAND / np.sqrt(len(column)))
        knots.append(values)
        heights.append(middle)
    offsets = np.cumsum([0, *map(len, knots)]).astype(np.int64)
    return UnitMap(np.concatenate(knots), np.concatenate(heights), offsets)


def _fewest_quantiles(values, heights, band):
    """Quantiles at the fewest of 1, 2, 4, ... steps that stay within the band, or all values."""
    steps = 1
    while steps + 1 < len(values):
        even = np.linspace(0.0, 1.0, steps + 1)
        quantiles, first = np.unique(np.interp(even, heights, values), return_index=True)
        if np.abs(np.interp(values, quantiles, even[first]) - heights).max() <= band:
            return quantiles, even[first]
        steps *= 2
    return values, heights


@njit(cache=True)
def to_unit(X, knots, heights, offsets):
    """(p, rows) contiguous columns of X on the scale of the map.

    Raises
    ------
    ValueError
        Wrong number of columns, or a cell that is not finite.
    """
    n, p = X.shape
    if p != offsets.size - 1:
        raise ValueError(
            "X has another number of columns than the X the forest was declared with: "
            "give it the same columns in the same order."
        )
    out = np.empty((p, n))
    for j in range(p):
        first, last = offsets[j], offsets[j + 1] - 1
        for i in range(n):
            x = X[i, j]
            if not np.isfinite(x) or x < -1e250:  # the mark of missing cells
                raise ValueError(
                    "X holds NaN or infinite values: soft trees take none. Remove or impute those "
                    "rows before predicting."
                )
            if x <= knots[first]:
                out[j, i] = heights[first]
            elif x >= knots[last]:
                out[j, i] = heights[last]
            else:
                a = first + np.searchsorted(knots[first : last + 1], x, side="right") - 1
                share = (x - knots[a]) / (knots[a + 1] - knots[a])
                out[j, i] = heights[a] + share * (heights[a + 1] - heights[a])
    return out
