"""Arrays that moves write to, made once per forest."""

from typing import NamedTuple

import numpy as np


class Workspace(NamedTuple):
    """Buffers for one move on one tree; N = ``max_nodes``, n training rows, D statistics."""

    rows: np.ndarray
    """(n,) uint32: rows of the node a move acts on."""
    buffer: np.ndarray
    """(n,) uint32: buffer of `partition_rows`."""
    nodes: np.ndarray
    """(N,) int32: the tree in preorder."""
    below: np.ndarray
    """(N,) int32: a subtree in preorder."""
    inside: np.ndarray
    """(N,) bool: False between calls."""
    stats: np.ndarray
    """(N, D) float64: statistics of the leaves of the open tree."""
    start: np.ndarray
    """(N,) int64: first place of a node's rows in ``rows`` under a proposed subtree."""
    stop: np.ndarray
    """(N,) int64: end of them."""
    log_cut: np.ndarray
    """(N,) float64: proposed ``Trees.log_cut``."""
    log_column: np.ndarray
    """(N,) float64: proposed ``Trees.log_column``."""
    unsplittable: np.ndarray
    """(N,) bool: proposed ``Trees.unsplittable``."""
    new_stats: np.ndarray
    """(N, D) float64: proposed statistics of leaves."""
    rate: np.ndarray
    """(N,) float64: proposed ``Trees.rate``."""
    cease: np.ndarray
    """(1,) bool: set from outside when a sweep is to end after the tree it is at."""


def make_workspace(max_nodes: int, n_rows: int, n_stats: int) -> Workspace:
    """Workspace for a forest of ``max_nodes`` nodes over ``n_rows`` rows."""
    max_nodes = max(max_nodes, 2)  # grow keeps two proposed leaves
    return Workspace(
        rows=np.zeros(n_rows, dtype=np.uint32),
        buffer=np.zeros(n_rows, dtype=np.uint32),
        nodes=np.zeros(max_nodes, dtype=np.int32),
        below=np.zeros(max_nodes, dtype=np.int32),
        inside=np.zeros(max_nodes, dtype=np.bool_),
        stats=np.zeros((max_nodes, n_stats)),
        start=np.zeros(max_nodes, dtype=np.int64),
        stop=np.zeros(max_nodes, dtype=np.int64),
        log_cut=np.zeros(max_nodes),
        log_column=np.zeros(max_nodes),
        unsplittable=np.zeros(max_nodes, dtype=np.bool_),
        new_stats=np.zeros((max_nodes, n_stats)),
        rate=np.zeros(max_nodes),
        cease=np.zeros(1, dtype=np.bool_),
    )
