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
from pymc_trees.core.random import draw_by_weight, pick


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


# --------------------- Weights of particles on the log scale, and the ancestors of a new generation
#
# A scheme gives particle c, of normalised weight w_c, C w_c children on average, which suffices for
# an unbiased evidence (Douc, Cappe and Moulines 2005).
#
# multinomial
#     C independent draws by weight.
# systematic
#     The points ``(c + u) / C`` of the cumulative weights, with one uniform u for all.
# stratified
#     The same, with a separate uniform for each point.
# residual
#     The integer part of ``C w_c`` children for certain, and multinomial draws from the remaining
#     weights for the rest; not implemented given a reference particle.


MULTINOMIAL, SYSTEMATIC, STRATIFIED, RESIDUAL = 0, 1, 2, 3
SCHEMES = ("multinomial", "systematic", "stratified", "residual")
CONDITIONAL_SCHEMES = SCHEMES[:RESIDUAL]
"""Schemes of `resample_given_first`."""


@njit(cache=True)
def log_sum_exp(log_w):
    """Log of the sum of exponentials; -inf if every term is -inf."""
    largest = log_w.max()
    if largest == -np.inf:
        return -np.inf
    total = 0.0
    for c in range(log_w.size):
        total += np.exp(log_w[c] - largest)
    return largest + np.log(total)


@njit(cache=True)
def normalise(log_w, weights):
    """Write the normalised weights; return the log of their sum."""
    log_total = log_sum_exp(log_w)
    for c in range(log_w.size):
        weights[c] = np.exp(log_w[c] - log_total)
    return log_total


@njit(cache=True)
def effective_size(weights):
    """Effective number of particles of normalised weights."""
    total = 0.0
    for c in range(weights.size):
        total += weights[c] * weights[c]
    return 1.0 / total


@njit(cache=True)
def draw_ancestors(rng, scheme, weights, ancestors):
    """Write the ancestors of ``ancestors.size`` children, in no particular order.

    Parameters
    ----------
    scheme : int
        Index in `SCHEMES`.
    weights : (C,) float64
        Normalised.
    ancestors : (N,) int64
        Overwritten.
    """
    n = ancestors.size
    if scheme == MULTINOMIAL:
        _multinomial(rng, weights, ancestors)
    elif scheme == RESIDUAL:
        remainder = np.empty(weights.size)
        n_fixed = 0
        for c in range(weights.size):
            n_copies = min(int(n * weights[c]), n - n_fixed)
            ancestors[n_fixed : n_fixed + n_copies] = c
            n_fixed += n_copies
            remainder[c] = max(n * weights[c] - n_copies, 0.0)
        if n_fixed < n:
            remainder /= remainder.sum()
            _multinomial(rng, remainder, ancestors[n_fixed:])
    else:
        u = rng.random()
        c, cumulative = 0, weights[0]
        for k in range(n):
            if k > 0 and scheme != SYSTEMATIC:
                u = rng.random()
            while cumulative * n <= k + u and c < weights.size - 1:
                c += 1
                cumulative += weights[c]
            while weights[c] == 0.0:  # rounding at the very end
                c -= 1
            ancestors[k] = c


@njit(cache=True)
def _multinomial(rng, weights, ancestors):
    cumulative = np.cumsum(weights)
    total = cumulative[-1]
    for k in range(ancestors.size):
        c = np.searchsorted(cumulative, rng.random() * total, side="right")
        while c >= weights.size or weights[c] == 0.0:  # rounding
            c -= 1
        ancestors[k] = c


# ------------------------------------------------ Conditional SMC: particle 0 is the reference tree


@njit(cache=True)
def resample_given_first(rng, scheme, weights, ancestors):
    """Write ancestors of all children given that ``ancestors[0]`` is 0.

    Each scheme is drawn from its conditional distribution (Chopin and Singh 2015, section 4); an
    ordinary draw with particle 0 added would not be invariant. Before a systematic or stratified
    draw the particles are put in a random order, so that a child's ancestor follows the weights
    whatever the index of the reference. Given that child 0 copies particle 0, the point that
    generated it is uniform over particle 0's share of the unit interval; it determines the common
    uniform of a systematic draw, but only its own stratum of a stratified one.

    Parameters
    ----------
    scheme : int
        Index in `CONDITIONAL_SCHEMES`.
    weights : (C,) float64
        Normalised; ``weights[0]`` is positive.
    ancestors : (C,) int64
        Overwritten.
    """
    n = weights.size
    ancestors[0] = 0
    if scheme == MULTINOMIAL:
        for c in range(1, n):
            ancestors[c] = draw_by_weight(weights, 0, n, rng.random())
        return
    order = np.arange(n)
    for c in range(n - 1):
        other = c + pick(rng, n - c)
        order[c], order[other] = order[other], order[c]
    ordered = weights[order]
    before = 0.0
    for c in range(n):
        if order[c] == 0:
            break
        before += ordered[c]
    point = n * (before + rng.random() * weights[0])
    stratum = min(int(point), n - 1)
    for c in range(1, n):
        u = point - stratum if scheme == SYSTEMATIC else rng.random()
        point_c = ((stratum + c) % n + u) / n
        ancestors[c] = order[draw_by_weight(ordered, 0, n, point_c)]


@njit(cache=True)
def forced_move(rng, weights):
    """Particle 0, or another one drawn so that the weights stay invariant.

    Metropolised Gibbs: a particle k other than 0 is proposed by weight and accepted with
    probability ``min(1, (1 - w_0) / (1 - w_k))``. This leaves particle 0 at least as often as a
    draw by weight does (Chopin and Singh 2015, section 3; Liu 1996); with two particles it is the
    Metropolis-Hastings decision ``min(1, w_1 / w_0)``.
    """
    others = 1.0 - weights[0]
    if not others > 0.0:
        return 0
    k = draw_by_weight(weights, 1, weights.size, rng.random() * others)
    if k < 0 or rng.random() * (1.0 - weights[k]) >= others:
        return 0
    return k
