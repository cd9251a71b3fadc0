"""Growth of particles: one node at a time, and from one generation to the next."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.design import partition_rows
from pymc_trees.core.columns.mixed import column_of
from pymc_trees.core.columns.rules import draw_rule, draw_side, log_rule, log_side
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.histograms.cache import (
    NodeRows,
    clear_histograms,
    fill_root,
    histogram_slot,
    release_histogram,
    split_histogram,
)
from pymc_trees.core.histograms.contract import Bins, tempering
from pymc_trees.core.leaves.contract import add_rows, log_marginal, reads_path
from pymc_trees.core.leaves.path import extend_path
from pymc_trees.core.moves.contract import FULL
from pymc_trees.core.priors.contract import (
    NodeContext,
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
    candidate_columns,
    cut_in_interval,
    draw_interval,
    find_interval,
    log_new_column,
    mark_from_prior,
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
def draw_optimal(rng, problem, growth, node_rows, context, code, cut, replay):
    """Draw stop or a split by the optimal proposal, or evaluate the outcome of a reference.

    Returns
    -------
    code : int
        `STOP` or the first number of the rule (`mixed`).
    cut, log_q : float
        Cut, and log probability of the outcome.
    log_new : float
        `log_new_column` of its column.
    """
    design, prior, look_ahead, bins = problem.design, problem.prior, growth.look_ahead, growth.bins
    rows, start, stop = node_rows.rows, node_rows.start, node_rows.stop
    slot = histogram_slot(
        look_ahead.histograms, bins, problem.leaf, candidate_columns(look_ahead), node_rows
    )
    histogram = look_ahead.histograms.sums[slot]
    log_total = look_ahead.root[0] if node_rows.node == 0 else np.nan
    if np.isnan(log_total):  # weights of the root are computed once for all particles
        mark_used(look_ahead, design, growth.particles, node_rows.particle)
        mark_from_prior(look_ahead, design, rows, start, stop)
        if reads_path(problem.leaf):
            above = growth.particles.stats[node_rows.particle, node_rows.node]
            look_ahead.scores.path[0] = above[above.size - 1]
        power = tempering(problem.leaf, rows, start, stop)
        log_total = weigh_splits(look_ahead, bins, prior, problem.leaf, histogram, context, power)
        look_ahead.root[0] = log_total if node_rows.node == 0 else np.nan
    reference_cut = np.nan
    if replay:
        column = STOP if code == STOP else column_of(design, code)
        a, k, log_q = find_interval(look_ahead, bins, prior, context, log_total, column, cut)
        reference_cut = cut
    else:
        a, k, log_q = draw_interval(rng, look_ahead, prior, context, log_total)
    if a == STOP:
        release_histogram(look_ahead.histograms, node_rows.particle, node_rows.node)
        return code, cut, log_q, 0.0
    column = look_ahead.columns[a]
    if not look_ahead.from_prior[a]:
        stats, interval = (
            growth.particles.stats[node_rows.particle, node_rows.node],
            Interval(a, column, k),
        )
        cut, log_p = cut_in_interval(
            rng, problem, growth, node_rows, histogram, interval, stats, reference_cut
        )
        log_q += log_p + log_side(design)
        if not replay:
            code = draw_side(rng, design, column)
    elif replay:
        log_q += log_rule(design, code, cut, rows, start, stop)
    else:
        code, cut, log_p = draw_rule(rng, design, column, rows, start, stop)
        log_q += log_p
    return code, cut, log_q, log_new_column(look_ahead, column)


# ------------------------------------------------------------------- Grow one particle by one node


INTERRUPTED = -2
"""Growth was interrupted before the trees were complete."""


@by_pointer
class Growth(NamedTuple):
    """Particles, and settings of their growth."""

    particles: Particles
    bins: Bins
    look_ahead: LookAhead
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
    node = int(particles.queue[c, particles.queue_head[c]])
    particles.queue_head[c] += 1
    rows, start, stop = particles.rows[c], particles.start[c, node], particles.stop[c, node]
    node_rows = NodeRows(c, node, rows, start, stop)
    depth, parent_time = np.int64(particles.depth[c, node]), particles.parent_time[c, node]
    context = NodeContext(depth, parent_time, particles.rate[c, node], False)
    code, cut, time, log_new = STOP, 0.0, 0.0, 0.0
    source = particles.reference[node] if replay else STOP
    if replay and trees.column[source] >= 0:
        code, cut, time = int(trees.column[source]), trees.cut[source], trees.time[source]
    empirical = growth.proposal == EMPIRICAL
    if growth.proposal == OPTIMAL:
        code, cut, log_q, log_new = draw_optimal(
            rng, problem, growth, node_rows, context, code, cut, replay
        )
    elif replay:
        log_q = log_q_prior(design, prior, context, node_rows, code, cut, empirical)
    else:
        code, cut, log_q = draw_from_prior(rng, design, prior, context, node_rows, empirical)
    if code == STOP:
        particles.log_w[c] += log_stop(prior, context) - log_q
        return 0
    left, right = particles.n_nodes[c], particles.n_nodes[c] + 1
    if right >= particles.column.shape[1]:
        return FULL
    log_cut = log_rule(design, code, cut, rows, start, stop)
    if log_cut == -np.inf:  # a cut of the optimal proposal that leaves one side empty
        particles.log_w[c] = -np.inf
        particles.queue_head[c] = particles.n_nodes[c]
        return 0
    column = column_of(design, code)
    log_p_column = log_column(prior, design, column, log_cut, context.rate, rows, start, stop)
    if not replay:
        time = draw_time(rng, prior, context)
    particles.column[c, node], particles.cut[c, node] = code, cut
    particles.log_cut[c, node], particles.log_column[c, node] = log_cut, log_p_column
    split_node(problem, growth, node_rows, time)
    if replay:
        particles.reference[left] = trees.left[source]
        particles.reference[right] = trees.right[source]
    particles.log_w[c] += (
        log_split(prior, context)
        + log_p_column
        + log_cut
        + particles.log_m[c, left]
        + particles.log_m[c, right]
        - particles.log_m[c, node]
        - log_q
        + log_new
    )
    return 0


@njit(cache=True)
def split_node(problem, growth, node_rows, time):
    """Give a node, whose rule is written, two children with its rows."""
    design, leaf, particles, c = problem.design, problem.leaf, growth.particles, node_rows.particle
    rows, start, stop, node = node_rows.rows, node_rows.start, node_rows.stop, node_rows.node
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
        particles.parent_time[c, child] = time
        stats = particles.stats[c, child]
        add_rows(leaf, rows, first, end, stats)
        extend_path(leaf, design, particles.stats[c, node], code, stats)
        particles.log_m[c, child] = log_marginal(leaf, stats)
        child_unsplittable, rate = node_summary(problem.prior, design, rows, first, end)
        particles.unsplittable[c, child], particles.rate[c, child] = child_unsplittable, rate
        unsplittable = unsplittable and child_unsplittable
    particles.n_nodes[c] = left + 2
    if growth.proposal == OPTIMAL:
        look_ahead = growth.look_ahead
        subset = candidate_columns(look_ahead)
        split_histogram(
            look_ahead.histograms, growth.bins, leaf, subset, node_rows, left, middle, unsplittable
        )


# --------------- All particles together: start, number of incomplete ones, and the next generation


@njit(cache=True)
def start_particles(problem, growth, root_stats, unsplittable, rate):
    """Make every particle a root with all rows, given its statistics and prior terms.

    Weights are 1. Return the log marginal likelihood of the root.
    """
    particles, look_ahead = growth.particles, growth.look_ahead
    log_m = log_marginal(problem.leaf, root_stats)
    for c in range(particles.log_w.size):
        start_particle(particles, c, unsplittable, root_stats, log_m)
        particles.rate[c, 0] = rate
    if growth.proposal == OPTIMAL:
        look_ahead.root[0] = np.nan
        subset, rows = candidate_columns(look_ahead), particles.rows[0]
        fill_root(look_ahead.histograms, growth.bins, problem.leaf, subset, rows)
    return log_m


@njit(cache=True)
def is_incomplete(particles, c):
    """Whether a particle has a node to expand; nodes whose rows are all alike are skipped."""
    position, n_nodes = particles.queue_head[c], particles.n_nodes[c]
    while position < n_nodes and particles.unsplittable[c, particles.queue[c, position]]:
        position += 1
    particles.queue_head[c] = position
    return position < n_nodes


@njit(cache=True)
def count_incomplete(particles):
    """Number of particles that are not complete."""
    n = 0
    for c in range(particles.log_w.size):
        n += is_incomplete(particles, c)
    return n


@njit(cache=True)
def next_generation(growth, ancestors, log_sum):
    """Replace the particles by children of their ancestors, each of the mean weight W / C."""
    particles = growth.particles
    rearrange(particles, ancestors)
    for c in range(ancestors.size):
        if growth.proposal == OPTIMAL:
            clear_histograms(growth.look_ahead.histograms, c)
        particles.log_w[c] = log_sum - np.log(ancestors.size)
