"""A node of a particle expanded by the one-step optimal proposal."""

import numpy as np

from pymc_trees.core.columns.mixed import column_of
from pymc_trees.core.columns.rules import draw_rule, draw_side, log_rule, log_side
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.histograms.cache import histogram_of, release
from pymc_trees.core.histograms.contract import tempering
from pymc_trees.core.leaves.contract import reads_path
from pymc_trees.core.samplers.particles.cut_in_interval import Interval, cut_in_interval
from pymc_trees.core.samplers.particles.optimal import (
    STOP,
    columns_of,
    draw_interval,
    find_by_prior,
    find_interval,
    log_new_column,
    mark_used,
    weigh_splits,
)


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
