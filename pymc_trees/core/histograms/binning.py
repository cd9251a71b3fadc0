"""Columns binned once, for proposals that look one split ahead.

Column j has increasing edges ``e_0 < .. < e_K`` among its distinct values (all of them if there are
few). The code of a cell x is the number of edges below it: a cut in interval k, ``[e_k, e_{k+1})``,
sends the codes up to k to the left, and those cells of code k + 1 that are at most the cut: none if
that code has a single value.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.pointer import by_pointer


@by_pointer
class Bins(NamedTuple):
    """Codes and edges of all columns, in the units of the design's cells."""

    codes: np.ndarray
    """(n, p) uint8: the codes of a row are contiguous."""
    edges: np.ndarray
    """Edges of all columns, one after another."""
    lengths: np.ndarray
    """As ``edges``: length of the interval from each edge to the next; 0 for a column's last."""
    single: np.ndarray
    """As ``edges``: whether the code of that number has a single value."""
    ahead: np.ndarray
    """As ``edges``: 1/2 when cuts of the interval from this edge split the code above, else 0."""
    offsets: np.ndarray
    """(p + 1,) int64: column j's edges are ``edges[offsets[j]:offsets[j + 1]]``."""


def make_bins(
    columns: np.ndarray,
    n_bins: int,
    left_out: np.ndarray | None = None,
    order: np.ndarray | None = None,
) -> Bins:
    """Bin (p, n) design columns at up to ``n_bins`` + 1 edges, at most 256.

    Edges are the distinct values if they are few enough, else evenly spaced quantiles with both
    extremes. A column ``left_out``, (p,) bool, has the code 0 alone. ``order``, (p, n), sorts the
    cells of each column, if known; codes need none.
    """
    p, n = columns.shape
    codes = np.zeros((n, p), dtype=np.uint8)
    quantiles = np.floor((n - 1) * np.linspace(0, 1, n_bins + 1)).astype(np.int64)
    edges, lengths, singles, ahead, offsets = [], [], [], [], [0]
    for j in range(p):
        if left_out is not None and left_out[j]:
            chosen, per_code = np.zeros(1), np.ones(1)
        else:
            if columns.dtype.kind == "f":
                ranked = np.argsort(columns[j]) if order is None else order[j]
                values, chosen, codes[:, j] = _edges_of_numbers(columns[j], ranked, quantiles)
            else:
                values, chosen, codes[:, j] = _edges_of_codes(columns[j], quantiles)
            per_code = np.diff(np.searchsorted(values, chosen, side="right"), prepend=0)
        edges.append(chosen)
        lengths.append(np.append(np.diff(chosen), 0.0))
        singles.append(per_code == 1)
        ahead.append(np.append(np.where(per_code[1:] == 1, 0.0, 0.5), 0.0))
        offsets.append(offsets[-1] + len(chosen))
    return Bins(
        codes,
        np.concatenate(edges),
        np.concatenate(lengths),
        np.concatenate(singles),
        np.concatenate(ahead),
        np.array(offsets),
    )


def _edges_of_numbers(cells, ranked, quantiles):
    """Distinct values, edges, and the codes of the cells."""
    cells = cells[ranked].astype(np.float64)
    values = cells[np.append(True, cells[1:] != cells[:-1])]
    chosen = _edges(values, cells[quantiles])
    last = np.searchsorted(cells, chosen, side="right")  # cells above an edge come after
    codes = np.empty(len(cells), dtype=np.uint8)  # of one column, which the cache holds
    codes[ranked] = np.repeat(np.arange(len(chosen)), np.diff(last, prepend=0))
    return values, chosen, codes


def _edges_of_codes(cells, quantiles):
    """The same for integers below 65,536, which are counted instead of sorted."""
    counts = np.bincount(cells)
    values = np.flatnonzero(counts)
    index = np.searchsorted(np.cumsum(counts[values]), quantiles, side="right")
    chosen = _edges(values, values[index])
    table = np.searchsorted(chosen, np.arange(len(counts))).astype(np.uint8)
    return values, chosen.astype(np.float64), table[cells]


def _edges(values, at_quantiles):
    """All values if they are few, else those at the quantiles and both extremes."""
    if len(values) <= len(at_quantiles):
        return values
    return np.unique(np.append(at_quantiles, values[[0, -1]]))
