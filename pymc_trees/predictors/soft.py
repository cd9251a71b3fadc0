"""Outputs of soft trees at rows, for all draws, with numpy alone.

Weights go down all trees of some draws at once, one depth after another, as `core.soft_forest`
sends them: a side that would get less than `TINY` of the total weight gets none.
"""

import numpy as np

from pymc_trees.core.columns.cells import MISSING
from pymc_trees.predictors.packed import PackedForest

TINY = 1e-15
FAR = 38.0
AT_ONCE = 2_000_000
"""Nodes times rows whose weights are held at once."""


def to_unit(forest: PackedForest, X: np.ndarray) -> np.ndarray:
    """(p, n) columns on the scale of the cuts.

    Raises
    ------
    ValueError
        For missing cells.
    """
    if (X == MISSING).any() or np.isnan(X).any():
        raise ValueError(
            "X holds NaN or infinite values: soft trees take none. Remove or impute those "
            "rows before predicting."
        )
    arrays, offsets = forest.arrays, forest.arrays["offsets"]
    unit = np.empty(X.shape[::-1])
    for j in range(X.shape[1]):
        own = slice(offsets[j], offsets[j + 1])
        knots, heights, x = arrays["knots"][own], arrays["heights"][own], X[:, j]
        if len(knots) == 1:
            unit[j] = heights[0]
            continue
        at = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
        share = (x - knots[at]) / (knots[at + 1] - knots[at])
        inside = heights[at] + share * (heights[at + 1] - heights[at])
        unit[j] = np.where(x <= knots[0], heights[0], np.where(x >= knots[-1], heights[-1], inside))
    return unit


def evaluate(forest: PackedForest, X: np.ndarray) -> np.ndarray:
    """(D, n, 1) outputs of all draws at (n, p) rows."""
    unit, links, m = to_unit(forest, X), forest.links, forest.trees
    starts = links.roots[::m]  # of the draws, and T
    out = np.empty((forest.draws, len(X), 1))
    widest = max(1, int(np.diff(starts).max()))
    width = max(1, min(len(X), AT_ONCE // widest))
    together = max(1, AT_ONCE // (widest * width))
    for first in range(0, forest.draws, together):
        draws = slice(first, min(first + together, forest.draws))
        for start in range(0, len(X), width):
            rows = slice(start, start + width)
            out[draws, rows, 0] = _some(forest, draws, unit[:, rows])
    return out


def _some(forest: PackedForest, draws: slice, unit: np.ndarray) -> np.ndarray:
    """(draws, rows) sums of the trees of some draws."""
    links, m = forest.links, forest.trees
    roots = links.roots[draws.start * m : draws.stop * m + 1]
    low, high = roots[0], roots[-1]
    weight = np.zeros((high - low, unit.shape[1]))
    weight[roots[:-1] - low] = 1.0
    trees = np.repeat(np.arange(draws.start * m, draws.stop * m), np.diff(roots))
    bandwidth = forest.arrays["bandwidths"][trees][:, None]
    for splits in forest.levels_of_depth:
        nodes = links.split[splits]
        own = (nodes >= low) & (nodes < high)
        if not own.any():
            continue
        splits, here = splits[own], nodes[own] - low
        column, cut = links.column[splits], links.cut[splits][:, None]
        x, total = unit[column], weight[here]
        near_left = x <= cut
        tail = np.exp(-np.minimum(np.abs(cut - x) / bandwidth[here], FAR))
        near = total / (1.0 + tail)
        far = tail * near
        dropped = far < TINY
        hard = forest.arrays["hard"][column][:, None]
        near = np.where(dropped | hard, total, near)
        far = np.where(dropped | hard, 0.0, far)
        weight[here + 1] = np.where(near_left, near, far)
        weight[links.right[splits] - low] = np.where(near_left, far, near)
        weight[here] = 0.0
    values = np.zeros((high - low, 1))
    is_leaf = forest.arrays["rules"][low:high] == 0
    values[is_leaf, 0] = forest.values[links.leaf[low:high][is_leaf], 0]
    first = roots[:-1:m] - low
    return np.add.reduceat(weight * values, first, axis=0)
