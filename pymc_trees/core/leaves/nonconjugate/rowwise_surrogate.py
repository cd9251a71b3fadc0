"""Whole trees under a likelihood that is a product over rows: surrogate and final weights."""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.nonconjugate.gaussian.near import see_rows
from pymc_trees.core.leaves.nonconjugate.gaussian.rows import expand_rows
from pymc_trees.core.leaves.nonconjugate.proposal import fit_groups
from pymc_trees.core.leaves.nonconjugate.rowwise import RowwiseData, draw_and_weigh, weigh
from pymc_trees.core.leaves.nonconjugate.slopes import call_slopes
from pymc_trees.core.leaves.nonconjugate.surrogate import register_surrogate


@njit(cache=True)
def _fill_surrogate(leaf, near):
    """Expand the rows at the mode of a single-leaf tree."""
    work, offset = leaf.work, leaf.offset
    outputs = work.outputs
    n, n_values = offset.shape
    for i in range(n):
        work.rows[i] = i
        work.labels[i] = 0
    fit_groups(leaf, n, 1)
    for i in range(n):
        for k in range(n_values):
            outputs[i, k] = offset[i, k] + work.mode[0, k]
    call_slopes(leaf, n, work.rows, outputs, work.slopes)
    linear, precision = np.empty((n, n_values)), np.empty((n, n_values, n_values))
    expand_rows(outputs, work.slopes, linear, precision)
    see_rows(near, linear, precision, offset, 1.0)


@njit(cache=True)
def _finish_tree(leaf, rng, particles, c):
    work, rows = leaf.work, particles.rows[c]
    column, stats = particles.column[c], particles.stats[c]
    n = rows.size
    n_nodes, n_groups = particles.n_nodes[c], 0
    for k in range(n_nodes):
        if column[k] < 0:
            for i in range(particles.start[c, k], particles.stop[c, k]):
                work.labels[rows[i]] = n_groups
            n_groups += 1
    for i in range(n):
        work.rows[i] = i
    draw_and_weigh(leaf, n, n_groups)
    total, g = 0.0, 0
    for k in range(n_nodes):
        if column[k] < 0:
            weigh(leaf, g, work.drawn[g], stats[k])
            total += stats[k, 0]
            g += 1
    return total


register_surrogate(RowwiseData, fill_surrogate=_fill_surrogate, finish_tree=_finish_tree)
