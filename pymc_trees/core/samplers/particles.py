"""Partial trees grown in parallel, one per particle.

A particle's nodes are numbered in order of creation and queued in this order: ``queue_head`` is the
index in the queue of the node that is expanded next, and a particle is complete when it has reached
the end. The right child of a node follows its left child.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.forest.trees import reset_tree, split_leaf


@by_pointer
class Particles(NamedTuple):
    """C partial trees of up to M nodes over n rows, with D statistics per node."""

    column: np.ndarray
    """(C, M) int32: split column; -1 for a leaf or a node not yet expanded."""
    cut: np.ndarray
    """(C, M) float64."""
    left: np.ndarray
    """(C, M) int32: left child; the right one is the next."""
    depth: np.ndarray
    """(C, M) int32."""
    start: np.ndarray
    """(C, M) int64: first index of the node's rows in ``rows[c]``."""
    stop: np.ndarray
    """(C, M) int64."""
    unsplittable: np.ndarray
    """(C, M) bool: the node's rows are all alike."""
    log_cut: np.ndarray
    """(C, M) float64: as in `Trees`."""
    log_column: np.ndarray
    """(C, M) float64."""
    parent_time: np.ndarray
    """(C, M) float64: time of the parent's split, 0 at a root."""
    rate: np.ndarray
    """(C, M) float64: as in `Trees`."""
    stats: np.ndarray
    """(C, M, D) float64: statistics of the node's rows."""
    log_m: np.ndarray
    """(C, M) float64: their log marginal likelihood."""
    rows: np.ndarray
    """(C, n) uint32: the training rows, those of a node contiguous."""
    n_nodes: np.ndarray
    """(C,) int64."""
    queue_head: np.ndarray
    """(C,) int64: index of the next node in ``queue``."""
    queue: np.ndarray
    """(C, M) int32: nodes in the order they are expanded: breadth first, unless reordered."""
    log_w: np.ndarray
    """(C,) float64: log weights since the last resampling."""
    reference: np.ndarray
    """(M,) int32: node of the reference tree for each node of particle 0."""
    stop_flag: np.ndarray
    """(1,) bool: set from outside to end growth at once."""


def make_particles(n_particles: int, max_nodes: int, n_rows: int, n_stats: int) -> Particles:
    """Arrays for ``n_particles`` trees."""
    shape = (n_particles, max(max_nodes, 1))
    return Particles(
        column=np.empty(shape, dtype=np.int32),
        cut=np.empty(shape),
        left=np.empty(shape, dtype=np.int32),
        depth=np.empty(shape, dtype=np.int32),
        start=np.empty(shape, dtype=np.int64),
        stop=np.empty(shape, dtype=np.int64),
        unsplittable=np.empty(shape, dtype=np.bool_),
        log_cut=np.empty(shape),
        log_column=np.empty(shape),
        parent_time=np.zeros(shape),
        rate=np.zeros(shape),
        stats=np.empty((*shape, n_stats)),
        log_m=np.empty(shape),
        rows=np.empty((n_particles, n_rows), dtype=np.uint32),
        n_nodes=np.zeros(n_particles, dtype=np.int64),
        queue_head=np.zeros(n_particles, dtype=np.int64),
        queue=np.empty(shape, dtype=np.int32),
        log_w=np.zeros(n_particles),
        reference=np.empty(shape[1], dtype=np.int32),
        stop_flag=np.zeros(1, dtype=np.bool_),
    )


@njit(cache=True)
def start_particle(particles, c, unsplittable, stats, log_m):
    """Reset a particle to a root with all rows, given their statistics."""
    rows = particles.rows
    n = rows.shape[1]
    for i in range(n):
        rows[c, i] = i
    particles.column[c, 0] = -1
    particles.depth[c, 0] = 0
    particles.start[c, 0] = 0
    particles.stop[c, 0] = n
    particles.unsplittable[c, 0] = unsplittable
    for d in range(stats.size):
        particles.stats[c, 0, d] = stats[d]
    particles.log_m[c, 0] = log_m
    particles.n_nodes[c] = 1
    particles.queue_head[c] = 0
    particles.queue[c, 0] = 0
    particles.log_w[c] = 0.0


@njit(cache=True)
def copy_particle(particles, source, target):
    """Copy the partial tree ``source`` to ``target``; the caller sets weights."""
    n_nodes = particles.n_nodes[source]
    for k in range(n_nodes):
        particles.column[target, k] = particles.column[source, k]
        particles.cut[target, k] = particles.cut[source, k]
        particles.left[target, k] = particles.left[source, k]
        particles.depth[target, k] = particles.depth[source, k]
        particles.start[target, k] = particles.start[source, k]
        particles.stop[target, k] = particles.stop[source, k]
        particles.unsplittable[target, k] = particles.unsplittable[source, k]
        particles.log_cut[target, k] = particles.log_cut[source, k]
        particles.log_column[target, k] = particles.log_column[source, k]
        particles.parent_time[target, k] = particles.parent_time[source, k]
        particles.rate[target, k] = particles.rate[source, k]
        for d in range(particles.stats.shape[2]):  # numba checks shapes of slices: slow to compile
            particles.stats[target, k, d] = particles.stats[source, k, d]
        particles.log_m[target, k] = particles.log_m[source, k]
        particles.queue[target, k] = particles.queue[source, k]
    rows = particles.rows
    for i in range(rows.shape[1]):
        rows[target, i] = rows[source, i]
    particles.n_nodes[target] = n_nodes
    particles.queue_head[target] = particles.queue_head[source]


@njit(cache=True)
def rearrange(particles, ancestors):
    """Replace the particles by their children, in place.

    The index of a child is arbitrary (except for the reference, which is its own ancestor): an
    ancestor with children keeps its index, and only childless particles are overwritten.
    """
    n = ancestors.size
    unplaced = np.zeros(n, dtype=np.int64)  # children of each particle still to be placed
    for c in range(n):
        unplaced[ancestors[c]] += 1
    for c in range(n):
        if unplaced[c] > 0:
            unplaced[c] = unplaced[c] - 1  # keeps its index
        else:
            unplaced[c] = -1  # index is free
    source = 0
    for c in range(n):
        if unplaced[c] == -1:
            while unplaced[source] <= 0:
                source += 1
            copy_particle(particles, source, c)
            unplaced[source] -= 1


# --------------------------------------------------------- From a particle to a tree of the forest


@njit(cache=True)
def write_tree(trees, tree, particles, c, stats, nodes):
    """Make particle ``c`` the tree; False, with an invalid tree, if the pool is full."""
    root = trees.roots[tree]
    reset_tree(trees, tree, nodes)
    nodes[0] = root
    rows, leaf_of = particles.rows, trees.leaf_of
    for k in range(particles.n_nodes[c]):
        node = nodes[k]
        start, stop = particles.start[c, k], particles.stop[c, k]
        trees.count[node] = stop - start
        trees.unsplittable[node] = particles.unsplittable[c, k]
        trees.rate[node] = particles.rate[c, k]
        for d in range(stats.shape[1]):
            stats[node, d] = particles.stats[c, k, d]
        column = particles.column[c, k]
        if column < 0:
            for i in range(start, stop):
                leaf_of[tree, rows[c, i]] = node
            continue
        if not split_leaf(trees, node, column, particles.cut[c, k]):
            return False
        trees.log_cut[node] = particles.log_cut[c, k]
        trees.log_column[node] = particles.log_column[c, k]
        left = particles.left[c, k]
        trees.time[node] = particles.parent_time[c, left]
        nodes[left] = trees.left[node]
        nodes[left + 1] = trees.right[node]
    return True
