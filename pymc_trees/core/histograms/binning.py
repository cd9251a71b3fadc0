"""Columns binned once, for proposals that look one split ahead.

Column j has increasing edges ``e_0 < .. < e_K`` among its distinct values (all of them when there
are few). The code of a cell x is the number of edges below it, so that a cut in interval k,
``[e_k, e_{k+1})``, sends the codes up to k to the left, and of code k + 1 the cells at or below the
cut: none when that code stands for a single value.
"""

from typing import NamedTuple

import numpy as np


class Bins(NamedTuple):
    """Codes and edges of all columns, in the units of the design's cells."""

    codes: np.ndarray
    """(n, p) uint8: the codes of a row lie side by side."""
    edges: np.ndarray
    """Edges of all columns, one after another."""
    lengths: np.ndarray
    """As ``edges``: length of the interval from each edge to the next; 0 for a column's last."""
    single: np.ndarray
    """As ``edges``: whether the code of that number stands for one value."""
    ahead: np.ndarray
    """As ``edges``: 1/2 when cuts of the interval from this edge part the code above, else 0."""
    offsets: np.ndarray
    """(p + 1,) int64: column j's edges are ``edges[offsets[j]:offsets[j + 1]]``."""


def make_bins(columns: np.ndarray, n_bins: int, left_out: np.ndarray | None = None) -> Bins:
    """Bin (p, n) design columns at up to ``n_bins`` + 1 edges, at most 256.

    Edges are the distinct values when they are that few, else evenly spaced quantiles with both
    extremes. A column ``left_out``, (p,) bool, has the code 0 alone.
    """
    p, n = columns.shape
    codes = np.empty((n, p), dtype=np.uint8)
    edges, lengths, singles, ahead, offsets = [], [], [], [], [0]
    for j in range(p):
        cells = columns[j].astype(np.float64)
        if left_out is not None and left_out[j]:
            cells[:] = 0.0
        values = np.unique(cells)
        if len(values) > n_bins + 1:
            at = np.quantile(cells, np.linspace(0, 1, n_bins + 1), method="lower")
            chosen = np.unique(np.concatenate([values[[0, -1]], at]))
        else:
            chosen = values
        codes[:, j] = np.searchsorted(chosen, cells, side="left")
        per_code = np.bincount(np.searchsorted(chosen, values, side="left"), minlength=len(chosen))
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
