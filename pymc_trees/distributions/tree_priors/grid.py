"""Ranges of the columns, and cuts on a grid."""

import numpy as np

from pymc_trees.arguments import check_number
from pymc_trees.core.columns.mixed import MISSING
from pymc_trees.core.columns.table_file import each_column, row_blocks

MOST_CUTS = 65_534
"""Codes are 16-bit: one for each side of every cut, and the largest for a missing cell."""


def check_ranges(X: np.ndarray) -> None:
    """The cut of a column has a density, so that its range must be a number."""
    lows, highs = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)
    for _, rows in row_blocks(X):
        lows = np.minimum(lows, rows.min(axis=0, where=rows != MISSING, initial=np.inf))
        highs = np.maximum(highs, rows.max(axis=0))
    with np.errstate(over="ignore"):
        wide = np.flatnonzero(np.isposinf(highs - lows))
    if wide.size:
        raise ValueError(
            f"X spans more than floating-point numbers can hold in columns {wide.tolist()}: "
            "rescale them."
        )


def _midpoints(values: np.ndarray) -> np.ndarray:
    """Cuts that part each of some increasing numbers from the next: ``low <= cut < high``."""
    low, high = values[:-1], values[1:]
    with np.errstate(over="ignore"):
        middle = (low + high) / 2
    middle = np.where(np.isfinite(middle), middle, low / 2 + high / 2)
    return np.where(middle < high, middle, low)  # between adjacent floats it rounds to either


def make_grid(X: np.ndarray, n_cuts, kinds: np.ndarray | None = None) -> list[np.ndarray] | None:
    """At most ``n_cuts`` cuts per column between its distinct values, at even quantiles.

    A column with levels has none; missing cells are left out.
    """
    if n_cuts is None:
        return None
    n_cuts = check_number("n_cuts", n_cuts, 1, more=", or None for cuts anywhere")
    if n_cuts > MOST_CUTS:
        raise ValueError(f"n_cuts={n_cuts}: at most {MOST_CUTS:,} cuts fit a 16-bit code.")
    grid = []
    for j, cells in enumerate(each_column(X)):
        x = cells[cells != MISSING]
        if kinds is not None and len(kinds) and kinds[j] != 0:
            x = x[:0]
        values = np.unique(x)
        cuts = _midpoints(values)
        if len(cuts) > n_cuts:
            at = np.quantile(x, np.arange(1, n_cuts + 1) / (n_cuts + 1), method="lower")
            # a cut at the largest value would leave its right side empty
            cuts = np.unique(at[at < values[-1]])
            if len(cuts) == 0:
                cuts = values[:1]
        grid.append(cuts)
    return grid
