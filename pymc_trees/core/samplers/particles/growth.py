"""Grow one particle by one node."""

import numpy as np

from pymc_trees.core.columns.design import partition_rows
from pymc_trees.core.columns.mixed import column_of
from pymc_trees.core.columns.rules import draw_rule, draw_side, log_rule, log_side
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.histograms.cache import divide_table, release_table, table_for
from pymc_trees.core.histograms.contract import tempering
from pymc_trees.core.leaves.contract import add_rows, log_marginal
from pymc_trees.core.moves.contract import FULL
from pymc_trees.core.priors.contract import (
    Place,
    draw_time,
    log_column,
    log_split,
    log_stop,
    survey,
)
from pymc_trees.core.samplers.particles.cut_in_interval import cut_in_interval
from pymc_trees.core.samplers.particles.optimal import (
    STOP,
    draw_interval,
    find_by_prior,
    find_interval,
    log_new_column,
    mark_used,
    weigh_splits,
)
from pymc_trees.core.samplers.particles.proposals import (
    EMPIRICAL,
    OPTIMAL,
    draw_from_prior,
    log_q_prior,
)

CEASED = -2
"""Growing was to end before the trees were complete."""


@njit(cache=True)
def is_waiting(particles, c):
    """Whether a particle has a node to expand; nodes whose rows are all alike are passed over."""
    place, unsplittable, queue = particles.waiting[c], particles.unsplittable, particles.queue
    n_nodes = particles.n_nodes[c]
    while place < n_nodes and unsplittable[c, queue[c, place]]:
        place += 1
    particles.waiting[c] = place
    return place < n_nodes


@njit(cache=True)
def grow_particle(
    rng, particles, c, trees, design, bins, prior, leaf, proposal, look, spare, replay
):
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
    node = int(particles.queue[c, particles.waiting[c]])
    particles.waiting[c] += 1
    rows = particles.rows[c]
    start, stop = particles.start[c, node], particles.stop[c, node]
    depth, log_m = particles.depth[c, node], particles.log_m[c, node]
    place = Place(depth, particles.begin[c, node], particles.rate[c, node], False)
    code, cut, time, log_new = STOP, 0.0, 0.0, 0.0
    if replay:
        source = particles.reference[node]
        if trees.column[source] >= 0:
            code, cut = int(trees.column[source]), trees.cut[source]
            time = trees.time[source]
    if proposal == OPTIMAL:
        columns, n_columns, tables = look.columns, look.n_columns[0], look.tables
        unit = tables.unit
        table = table_for(tables, bins, leaf, columns, n_columns, c, node, rows, start, stop)
        log_total = look.root[0] if node == 0 else np.nan
        if np.isnan(log_total):  # the root is weighed once for all particles
            mark_used(look, design, particles, c)
            find_by_prior(look, design, rows, start, stop)
            power = tempering(leaf, rows, start, stop)
            cells = tables.cells[table]
            log_total = weigh_splits(look, bins, prior, leaf, cells, unit, place, power)
            look.root[0] = log_total if node == 0 else np.nan
        known = np.nan
        if replay:
            column = STOP if code == STOP else column_of(design, code)
            at, k, log_q = find_interval(look, bins, prior, place, log_total, column, cut)
            known = cut
        else:
            at, k, log_q = draw_interval(rng, look, prior, place, log_total)
        if at == STOP:
            release_table(tables, c, node)
        elif look.by_prior[at]:
            column = columns[at]
            if replay:
                log_q += log_rule(design, code, cut, rows, start, stop)
            else:
                code, cut, log_density = draw_rule(rng, design, column, rows, start, stop)
                log_q += log_density
            log_new = log_new_column(look, column)
        else:
            column = columns[at]
            cut, log_density = cut_in_interval(
                rng,
                design,
                bins,
                leaf,
                tables.cells[table],
                unit,
                at,
                column,
                k,
                rows,
                start,
                stop,
                particles.stats[c, node],
                spare,
                known,
            )
            log_q += log_density + log_side(design)
            log_new = log_new_column(look, column)
            if not replay:
                code = draw_side(rng, design, column)
    elif replay:
        log_q = log_q_prior(
            design, prior, place, code, cut, rows, start, stop, proposal == EMPIRICAL
        )
    else:
        code, cut, log_q = draw_from_prior(
            rng, design, prior, place, rows, start, stop, proposal == EMPIRICAL
        )
    if code == STOP:
        particles.log_w[c] += log_stop(prior, place) - log_q
        return 0
    left = particles.n_nodes[c]
    right = left + 1
    if right >= particles.column.shape[1]:
        return FULL
    log_cut = log_rule(design, code, cut, rows, start, stop)
    if log_cut == -np.inf:  # a cut of the optimal proposal that parts nothing
        particles.log_w[c] = -np.inf
        particles.waiting[c] = particles.n_nodes[c]
        return 0
    column = column_of(design, code)
    log_share = log_column(prior, design, column, log_cut, place.rate, rows, start, stop)
    if not replay:
        time = draw_time(rng, prior, place)
    middle = partition_rows(design, code, cut, rows, start, stop, spare)
    particles.column[c, node] = code
    particles.cut[c, node] = cut
    particles.left[c, node] = left
    particles.log_cut[c, node] = log_cut
    particles.log_column[c, node] = log_share
    stats = particles.stats[c]
    add_rows(leaf, rows, start, middle, stats[left])
    add_rows(leaf, rows, middle, stop, stats[right])
    for side in range(2):
        child = left + side
        particles.queue[c, child] = child
        particles.column[c, child] = STOP
        particles.depth[c, child] = depth + 1
        particles.start[c, child] = start if side == 0 else middle
        particles.stop[c, child] = middle if side == 0 else stop
        particles.begin[c, child] = time
        particles.unsplittable[c, child], particles.rate[c, child] = survey(
            prior, design, rows, particles.start[c, child], particles.stop[c, child]
        )
        particles.log_m[c, child] = log_marginal(leaf, stats[child])
    particles.n_nodes[c] = right + 1
    if replay:
        particles.reference[left] = trees.left[source]
        particles.reference[right] = trees.right[source]
    particles.log_w[c] += (
        log_split(prior, place)
        + log_share
        + log_cut
        + particles.log_m[c, left]
        + particles.log_m[c, right]
        - log_m
        - log_q
        + log_new
    )
    if proposal == OPTIMAL:
        unsplittable = particles.unsplittable[c, left] and particles.unsplittable[c, right]
        divide_table(
            tables,
            bins,
            leaf,
            columns,
            n_columns,
            c,
            node,
            left,
            rows,
            start,
            middle,
            stop,
            unsplittable,
        )
    return 0
