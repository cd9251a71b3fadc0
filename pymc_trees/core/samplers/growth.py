"""Grow one particle by one node."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.design import partition_rows
from pymc_trees.core.columns.mixed import column_of
from pymc_trees.core.columns.rules import draw_rule, draw_side, log_rule, log_side
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.histograms.binning import Bins
from pymc_trees.core.histograms.cache import (
    NodeRows,
    divide,
    fill_root,
    forget,
    histogram_of,
    release,
)
from pymc_trees.core.histograms.contract import tempering
from pymc_trees.core.leaves.contract import add_rows, log_marginal, reads_path
from pymc_trees.core.leaves.path import extend_path
from pymc_trees.core.moves.contract import FULL
from pymc_trees.core.priors.contract import (
    Place,
    draw_time,
    log_column,
    log_split,
    log_stop,
    node_summary,
)
from pymc_trees.core.samplers.optimal import (
    STOP,
    Interval,
    LookAhead,
    columns_of,
    cut_in_interval,
    draw_interval,
    find_by_prior,
    find_interval,
    log_new_column,
    mark_used,
    weigh_splits,
)
from pymc_trees.core.samplers.particles import Particles, rearrange, start_particle
from pymc_trees.core.samplers.proposals import (
    EMPIRICAL,
    OPTIMAL,
    draw_from_prior,
    log_q_prior,
)

# ---------------------------------- A node of a particle expanded by the one-step optimal proposal


@njit(cache=True)
def split_ahead(rng, problem, growth, at, place, code, cut, replay):
    """Draw stop or a split, or evaluate the outcome ``code``, ``cut`` of a reference.

    Returns
    -------
    code : int
        `STOP` or the first number of the rule (`mixed`).
    cut, log_q : float
        Cut, and log probability of the outcome.
    log_new : float
        `log_new_column` of its column.
    """
    design, prior, look, bins = problem.design, problem.prior, growth.look, growth.bins
    rows, start, stop = at.rows, at.start, at.stop
    found = histogram_of(look.histograms, bins, problem.leaf, columns_of(look), at)
    histogram = look.histograms.sums[found]
    log_total = look.root[0] if at.node == 0 else np.nan
    if np.isnan(log_total):  # weights of the root are computed once for all particles
        mark_used(look, design, growth.particles, at.particle)
        find_by_prior(look, design, rows, start, stop)
        if reads_path(problem.leaf):
            above = growth.particles.stats[at.particle, at.node]
            look.scores.path[0] = above[above.size - 1]
        power = tempering(problem.leaf, rows, start, stop)
        log_total = weigh_splits(look, bins, prior, problem.leaf, histogram, place, power)
        look.root[0] = log_total if at.node == 0 else np.nan
    known = np.nan
    if replay:
        column = STOP if code == STOP else column_of(design, code)
        a, k, log_q = find_interval(look, bins, prior, place, log_total, column, cut)
        known = cut
    else:
        a, k, log_q = draw_interval(rng, look, prior, place, log_total)
    if a == STOP:
        release(look.histograms, at.particle, at.node)
        return code, cut, log_q, 0.0
    column = look.columns[a]
    if not look.by_prior[a]:
        stats, interval = growth.particles.stats[at.particle, at.node], Interval(a, column, k)
        cut, log_p = cut_in_interval(rng, problem, growth, at, histogram, interval, stats, known)
        log_q += log_p + log_side(design)
        if not replay:
            code = draw_side(rng, design, column)
    elif replay:
        log_q += log_rule(design, code, cut, rows, start, stop)
    else:
        code, cut, log_p = draw_rule(rng, design, column, rows, start, stop)
        log_q += log_p
    return code, cut, log_q, log_new_column(look, column)


# ------------------------------------------------------------------- Grow one particle by one node


CEASED = -2
"""Growth was interrupted before the trees were complete."""


@by_pointer
class Growth(NamedTuple):
    """Particles, and settings of their growth."""

    particles: Particles
    bins: Bins
    look: LookAhead
    """Of the optimal proposal."""
    proposal: int
    """Index in `proposals.PROPOSALS`."""
    buffer: np.ndarray
    """(n,) uint32: rows."""


@njit(cache=True)
def grow_particle(rng, problem, growth, c, replay):
    """Expand the next node of a particle and multiply its weight.

    The weight's factor is target over proposal: for a split

        p_split P(column) P(cut) p(rows left) p(rows right) / (p(rows) q(split, column, cut))

    and ``p_stop / q(stop)`` for a leaf (Lakshminarayanan 2015, eq. 11, for any proposal). The time
    of a split comes from the prior given that there is one, and cancels.

    Parameters
    ----------
    replay : bool
        Whether the particle is the reference: the outcome is that of the reference tree.

    Returns
    -------
    status : int
        0, or `FULL`.
    """
    trees, design, prior, particles = problem.trees, problem.design, problem.prior, growth.particles
    node = int(particles.queue[c, particles.waiting[c]])
    particles.waiting[c] += 1
    rows, start, stop = particles.rows[c], particles.start[c, node], particles.stop[c, node]
    at = NodeRows(c, node, rows, start, stop)
    depth, begin = np.int64(particles.depth[c, node]), particles.begin[c, node]
    place = Place(depth, begin, particles.rate[c, node], False)
    code, cut, time, log_new = STOP, 0.0, 0.0, 0.0
    source = particles.reference[node] if replay else STOP
    if replay and trees.column[source] >= 0:
        code, cut, time = int(trees.column[source]), trees.cut[source], trees.time[source]
    empirical = growth.proposal == EMPIRICAL
    if growth.proposal == OPTIMAL:
        code, cut, log_q, log_new = split_ahead(rng, problem, growth, at, place, code, cut, replay)
    elif replay:
        log_q = log_q_prior(design, prior, place, at, code, cut, empirical)
    else:
        code, cut, log_q = draw_from_prior(rng, design, prior, place, at, empirical)
    if code == STOP:
        particles.log_w[c] += log_stop(prior, place) - log_q
        return 0
    left, right = particles.n_nodes[c], particles.n_nodes[c] + 1
    if right >= particles.column.shape[1]:
        return FULL
    log_cut = log_rule(design, code, cut, rows, start, stop)
    if log_cut == -np.inf:  # a cut of the optimal proposal that leaves one side empty
        particles.log_w[c] = -np.inf
        particles.waiting[c] = particles.n_nodes[c]
        return 0
    column = column_of(design, code)
    log_share = log_column(prior, design, column, log_cut, place.rate, rows, start, stop)
    if not replay:
        time = draw_time(rng, prior, place)
    particles.column[c, node], particles.cut[c, node] = code, cut
    particles.log_cut[c, node], particles.log_column[c, node] = log_cut, log_share
    split_node(problem, growth, at, time)
    if replay:
        particles.reference[left] = trees.left[source]
        particles.reference[right] = trees.right[source]
    particles.log_w[c] += (
        log_split(prior, place)
        + log_share
        + log_cut
        + particles.log_m[c, left]
        + particles.log_m[c, right]
        - particles.log_m[c, node]
        - log_q
        + log_new
    )
    return 0


@njit(cache=True)
def split_node(problem, growth, at, time):
    """Give a node, whose rule is written, two children with its rows."""
    design, leaf, particles, c = problem.design, problem.leaf, growth.particles, at.particle
    rows, start, stop, node = at.rows, at.start, at.stop, at.node
    code, cut = int(particles.column[c, node]), particles.cut[c, node]
    middle = partition_rows(design, code, cut, rows, start, stop, growth.buffer)
    left = particles.n_nodes[c]
    particles.left[c, node] = left
    unsplittable = True
    for side in range(2):
        child = left + side
        first = start if side == 0 else middle
        end = middle if side == 0 else stop
        particles.queue[c, child] = child
        particles.column[c, child] = STOP
        particles.depth[c, child] = particles.depth[c, node] + 1
        particles.start[c, child], particles.stop[c, child] = first, end
        particles.begin[c, child] = time
        stats = particles.stats[c, child]
        add_rows(leaf, rows, first, end, stats)
        extend_path(leaf, design, particles.stats[c, node], code, stats)
        particles.log_m[c, child] = log_marginal(leaf, stats)
        alike, rate = node_summary(problem.prior, design, rows, first, end)
        particles.unsplittable[c, child], particles.rate[c, child] = alike, rate
        unsplittable = unsplittable and alike
    particles.n_nodes[c] = left + 2
    if growth.proposal == OPTIMAL:
        look = growth.look
        subset = columns_of(look)
        divide(look.histograms, growth.bins, leaf, subset, at, left, middle, unsplittable)


# --------------- All particles together: start, number of incomplete ones, and the next generation


@njit(cache=True)
def start_particles(problem, growth, root_stats, unsplittable, rate):
    """Make every particle a root with all rows, of known statistics and prior terms.

    The log marginal likelihood of the root; weights are 1.
    """
    particles, look = growth.particles, growth.look
    log_m = log_marginal(problem.leaf, root_stats)
    for c in range(particles.log_w.size):
        start_particle(particles, c, unsplittable, root_stats, log_m)
        particles.rate[c, 0] = rate
    if growth.proposal == OPTIMAL:
        look.root[0] = np.nan
        subset, rows = columns_of(look), particles.rows[0]
        fill_root(look.histograms, growth.bins, problem.leaf, subset, rows)
    return log_m


@njit(cache=True)
def is_waiting(particles, c):
    """Whether a particle has a node to expand; nodes whose rows are all alike are skipped."""
    place, n_nodes = particles.waiting[c], particles.n_nodes[c]
    while place < n_nodes and particles.unsplittable[c, particles.queue[c, place]]:
        place += 1
    particles.waiting[c] = place
    return place < n_nodes


@njit(cache=True)
def count_waiting(particles):
    """Number of particles that are not complete."""
    n = 0
    for c in range(particles.log_w.size):
        n += is_waiting(particles, c)
    return n


@njit(cache=True)
def next_generation(growth, ancestors, log_sum):
    """Replace the particles by children of their ancestors, each of the mean weight W / C."""
    particles = growth.particles
    rearrange(particles, ancestors)
    for c in range(ancestors.size):
        if growth.proposal == OPTIMAL:
            forget(growth.look.histograms, c)
        particles.log_w[c] = log_sum - np.log(ancestors.size)
