"""Arrays that the kernels of `rowwise` write to, allocated once per sweep."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.pointer import by_pointer


@by_pointer
class RowWorkspace(NamedTuple):
    """Arrays that kernels write to; n rows, at most G groups (leaves), K values."""

    rows: np.ndarray
    """(n,) int64: selected rows."""
    labels: np.ndarray
    """(n,) int64: group of each."""
    outputs: np.ndarray
    """(n, K) their outputs."""
    values: np.ndarray
    """(n, 1) log-likelihoods."""
    open_rows: np.ndarray
    """(n,) int64: rows of groups whose mode is not found yet."""
    open_labels: np.ndarray
    slopes: np.ndarray
    """(n, K + K^2) gradient and second derivatives."""
    label_of: np.ndarray
    """(N,) int64: group of each leaf."""
    mode: np.ndarray
    """(G, K)"""
    factor: np.ndarray
    """(G, K, K) lower Cholesky factor of the precision at the mode."""
    drawn: np.ndarray
    """(G, K)"""
    total: np.ndarray
    """(G,) log-likelihood of each group."""


def make_row_workspace(n: int, k: int, max_nodes: int) -> RowWorkspace:
    """Workspace for n rows, K outputs and the leaves of one tree."""
    most = min(max_nodes, n) + 1
    return RowWorkspace(
        rows=np.arange(n),
        labels=np.zeros(n, dtype=np.int64),
        outputs=np.zeros((n, k)),
        values=np.zeros((n, 1)),
        open_rows=np.zeros(n, dtype=np.int64),
        open_labels=np.zeros(n, dtype=np.int64),
        slopes=np.zeros((n, k + k * k)),
        label_of=np.zeros(max_nodes, dtype=np.int64),
        mode=np.zeros((most, k)),
        factor=np.zeros((most, k, k)),
        drawn=np.zeros((most, k)),
        total=np.zeros(most),
    )
