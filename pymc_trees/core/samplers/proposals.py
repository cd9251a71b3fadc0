"""How a particle's next node is expanded: prior, empirical and one-step optimal proposal.

A proposal draws stop, or a split (column, cut), and returns the log probability (density of the
cut) of the outcome; or that of a given outcome, for the weight of the reference particle. The
weights correct for the proposal: any distribution that can reach every tree is exact.

prior (Lakshminarayanan 2013, section 3.3)
    The tree prior itself.
empirical (the same)
    As the prior, but the cut is uniform in a gap between adjacent *distinct* values of the node's
    rows, all gaps being equally likely.
optimal (the same, section 3.3.1)
    Stop, or column and interval, in proportion to prior times marginal likelihood one step ahead;
    the cut falls in its interval in the same proportion. Intervals lie between the edges of
    `Bins`.

Where a column has levels or missing cells, its rule always comes from the prior.
"""

import numpy as np

from pymc_trees.core.columns.design import draw_cut, write_cells
from pymc_trees.core.columns.mixed import column_of, rule_from_prior
from pymc_trees.core.columns.rules import draw_rule, draw_side, log_rule, log_side
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.priors.contract import draw_column, log_column, log_split, log_stop
from pymc_trees.core.random import pick
from pymc_trees.core.samplers.optimal import STOP, argsort

PRIOR, EMPIRICAL, OPTIMAL = 0, 1, 2
PROPOSALS = ("prior", "empirical", "optimal")


@njit(cache=True)
def distinct_values(design, column, rows, start, stop):
    """Increasing distinct cells of a column in ``rows[start:stop]``."""
    cells = np.empty(stop - start)
    write_cells(design, column, rows, start, stop, cells)
    order, n = argsort(cells), 0
    distinct = np.empty(cells.size)
    for k in range(order.size):
        if n == 0 or cells[order[k]] > distinct[n - 1]:
            distinct[n] = cells[order[k]]
            n += 1
    return distinct[:n]


@njit(cache=True)
def log_gap_probability(design, column, cut, rows, start, stop):
    """Log density of a cut under the empirical proposal, given its column."""
    values = distinct_values(design, column, rows, start, stop)
    k = 1
    while values[k] <= cut:  # which is below the largest, as both sides have rows
        k += 1
    return -np.log(values.size - 1.0) - np.log(values[k] - values[k - 1])


@njit(cache=True)
def draw_from_prior(rng, design, prior, context, node_rows, empirical):
    """Stop, or a split from the prior (its cut from the empirical proposal).

    Parameters
    ----------
    context : NodeContext
        The node, as the prior sees it.
    node_rows : NodeRows
        The node.

    Returns
    -------
    code : int
        `STOP` or the first number of the rule (`mixed`).
    cut, log_q : float
        Cut, and log probability of the outcome.
    """
    rows, start, stop = node_rows.rows, node_rows.start, node_rows.stop
    log_p = log_split(prior, context)
    if np.log(rng.random()) >= log_p:
        return STOP, 0.0, log_stop(prior, context)
    column = draw_column(rng, prior, design, rows, start, stop)
    if empirical and not rule_from_prior(design, column):
        values = distinct_values(design, column, rows, start, stop)
        gap = pick(rng, values.size - 1)
        cut = draw_cut(rng, design, values[gap], values[gap + 1])
        code = draw_side(rng, design, column)
    else:
        code, cut, _ = draw_rule(rng, design, column, rows, start, stop)
    return code, cut, log_q_prior(design, prior, context, node_rows, code, cut, empirical)


@njit(cache=True)
def log_q_prior(design, prior, context, node_rows, code, cut, empirical):
    """Log probability of an outcome under `draw_from_prior`."""
    if code == STOP:
        return log_stop(prior, context)
    rows, start, stop = node_rows.rows, node_rows.start, node_rows.stop
    column = column_of(design, code)
    log_cut = log_rule(design, code, cut, rows, start, stop)
    log_q = log_split(prior, context)
    log_q += log_column(prior, design, column, log_cut, context.rate, rows, start, stop)
    if empirical and not rule_from_prior(design, column):
        log_q += log_side(design)
        return log_q + log_gap_probability(design, column, cut, rows, start, stop)
    return log_q + log_cut
