"""Columns of X, alone and in pairs, that explain the differences of the means of chains."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

BINS, CELLS = 50, 20
"""Most cells of a table of one column, and along each of two."""
PER_BIN, PER_CELL = 20, 10
"""Rows to a cell, by which there are fewer."""
MOST_COLUMNS = 10
"""Columns whose pairs are looked at."""


def cells_of(x: np.ndarray, most: int) -> np.ndarray:
    """(n,) numbers of the cells of a column: up to ``most``, with equally many rows each."""
    edges = np.unique(np.quantile(x, np.linspace(0, 1, most + 1)[1:-1], method="inverted_cdf"))
    return np.searchsorted(edges, x)


def explained(differences: np.ndarray, cells: np.ndarray) -> float:
    """Share of the variance over rows that a table explains, less that of chance.

    The adjusted R2 of means over cells, which is 0 on average where the cells say nothing.

    Parameters
    ----------
    differences : (chains, n) array
        With mean 0 over rows.
    cells : (n,) array of int
        Cell of each row.
    """
    _, codes = np.unique(cells, return_inverse=True)
    n, k = len(codes), int(codes.max()) + 1
    total = (differences**2).sum()
    if k >= n or total == 0:
        return 0.0
    counts = np.bincount(codes)
    sums = np.stack([np.bincount(codes, one) for one in differences])
    share = (sums**2 / counts).sum() / total
    return float(1 - (1 - share) * (n - 1) / (n - k))


def directions(
    apart: np.ndarray, X: np.ndarray, names: Sequence[str], splits: np.ndarray
) -> dict[tuple[str, ...], float]:
    """Shares of the variance of chains' means about their own, by columns.

    Parameters
    ----------
    apart : (chains, n) array
        Means of f at rows, less that over chains; several outputs are further chains.
    X : (n, p) array
        The rows.
    names : sequence of str
        Of the columns.
    splits : (p,) array
        How often trees split in each: pairs are those of the most frequent.

    Returns
    -------
    dict of tuple of str and float
        ``()`` is the level, the same at all rows; columns and pairs follow, largest first.
    """
    total = (apart**2).sum()
    if total == 0:
        return {(): 0.0}
    level = apart.mean(axis=1)
    apart = apart - level[:, None]
    rest = float((apart**2).sum() / total)
    found = {}
    for which, cells in _tables(X, splits):
        found[tuple(names[j] for j in which)] = rest * explained(apart, cells)
    ordered = dict(sorted(found.items(), key=lambda item: -item[1]))
    return {(): 1 - rest} | ordered


def _tables(X: np.ndarray, splits: np.ndarray) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    n = len(X)
    bins = int(np.clip(n // PER_BIN, 2, BINS))
    each = int(np.clip(np.sqrt(n / PER_CELL), 2, CELLS))
    used = [j for j in np.argsort(-splits, kind="stable") if splits[j] > 0 and np.ptp(X[:, j]) > 0]
    for j in used:
        yield (int(j),), cells_of(X[:, j], bins)
    coarse = {j: cells_of(X[:, j], each) for j in used[:MOST_COLUMNS]}
    for i, j in combinations(sorted(coarse), 2):
        yield (int(i), int(j)), coarse[i] * (each + 1) + coarse[j]
