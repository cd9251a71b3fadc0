"""The Mondrian process on the boxes of the training rows, up to a lifetime (Roy and Teh 2009).

A node whose rows have a box of linear dimension R (the sum of its sides) is split after a time
that is exponential with rate R, counted from the split of its parent, and is a leaf when that
exceeds the lifetime L (Lakshminarayanan 2016, alg. 5.1-5.2 and 6.1-6.2); the column is drawn in
proportion to its side, the cut uniformly on it. So given the time s of its parent's split

    p(no split) = exp(-R (L - s)),    p(split at t) = R exp(-R (t - s)),    s < t < L.

Times are part of the tree. A move keeps those of the nodes it keeps, a new node draws its own from
``p(t | split)``, and all are redrawn after each sweep: given the rest, the time of a node with
children of rates R1 and R2 has a density proportional to ``exp((R1 + R2 - R) t)`` from s to the
earliest split of a child.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.design import column_range, linear_dimension
from pymc_trees.core.columns.row_set import range_in_set
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import preorder
from pymc_trees.core.priors.contract import parent_time_of, register
from pymc_trees.core.random import draw_by_weight


class MondrianProcess(NamedTuple):
    """Settings."""

    lifetime: float
    weights: np.ndarray
    """(p,) of equal weights: columns are chosen by their extent alone."""


@njit(cache=True)
def make_mondrian(lifetime, unused, weights):
    """Prior with these settings; ``unused`` stands where `CGMPrior` has beta."""
    return MondrianProcess(lifetime, weights)


@njit(cache=True)
def truncated_exponential(rng, rate, width):
    """Exponential number below ``width``, given its rate, which may be 0 or negative."""
    u = rng.random()
    step = abs(rate)
    if step * width < 1e-12:
        return u * width
    below = -np.log1p(u * np.expm1(-step * width)) / step
    below = min(below, width)
    return below if rate > 0.0 else width - below


@njit(cache=True)
def node_summary(prior, design, rows, start, stop):
    """Whether a node's rows are all alike, and the linear dimension of their box."""
    rate = linear_dimension(design, rows, start, stop)
    return rate == 0.0, rate


@njit(cache=True)
def node_summary_of_set(prior, design, rows):
    """`node_summary` for rows stored as bits."""
    rate = 0.0
    for j in range(design.columns.shape[0]):
        if design.varies[j]:
            low, high = range_in_set(design, j, rows)
            rate += high - low
    return rate == 0.0, rate


@njit(cache=True)
def log_split(prior, context):
    """Log probability of a split before the lifetime ends."""
    return np.log(-np.expm1(-context.rate * (prior.lifetime - context.time)))


@njit(cache=True)
def log_stop(prior, context):
    """Log probability of no split before the lifetime ends."""
    return -context.rate * (prior.lifetime - context.time)


@njit(cache=True)
def draw_time(rng, prior, context):
    """Time of a split before the lifetime ends."""
    return context.time + truncated_exponential(rng, context.rate, prior.lifetime - context.time)


@njit(cache=True)
def log_split_at(prior, context, time):
    """Log density of the time of a split; -inf before its parent's and after the lifetime."""
    if time < context.time or time > prior.lifetime:
        return -np.inf
    return np.log(context.rate) - context.rate * (time - context.time)


@njit(cache=True)
def draw_column(rng, prior, design, rows, start, stop):
    """Column in proportion to its extent in the node."""
    p = design.columns.shape[0]
    total, extents = 0.0, np.zeros(p)
    for j in range(p):
        if design.varies[j]:
            low, high = column_range(design, j, rows, start, stop)
            extents[j] = high - low
            total += high - low
    return draw_by_weight(extents, 0, p, rng.random() * total)


@njit(cache=True)
def log_column(prior, design, column, log_cut, rate, rows, start, stop):
    """Log of the column's share of the linear dimension; cuts have one over its extent."""
    return -log_cut - np.log(rate)


@njit(cache=True)
def draw_set_column(rng, prior, design, rows):
    """`draw_column` for rows stored as bits."""
    p = design.columns.shape[0]
    total, drawn = 0.0, -1
    for j in range(p):
        if design.varies[j]:
            low, high = range_in_set(design, j, rows)
            total += high - low
    point = rng.random() * total
    for j in range(p):
        if design.varies[j]:
            low, high = range_in_set(design, j, rows)
            if high > low:
                drawn = j
                point -= high - low
                if point < 0.0:
                    break
    return drawn


@njit(cache=True)
def log_set_column(prior, design, column, log_cut, rate, rows):
    """`log_column` for rows stored as bits."""
    return -log_cut - np.log(rate)


@njit(cache=True)
def column_weight(prior, column, extent):
    """Extent."""
    return extent


@njit(cache=True)
def is_valid_time(prior, context, time):
    """Whether a time is finite and no earlier than the parent's."""
    return time >= context.time and time < np.inf


@njit(cache=True)
def add_time_terms(prior, trees, nodes, terms):
    """Add the terms of ``log p = terms[0] - L terms[1]``, and the time of the last split."""
    for t in range(trees.roots.size):
        for k in range(preorder(trees, trees.roots[t], nodes)):
            node = nodes[k]
            start, rate = parent_time_of(trees, node), trees.rate[node]
            if trees.column[node] >= 0:
                terms[0] += np.log(rate) - rate * (trees.time[node] - start)
                terms[2] = max(terms[2], trees.time[node])
            else:
                terms[0] += rate * start
                terms[1] += rate


@njit(cache=True)
def resample_times(rng, prior, trees, nodes):
    """One Gibbs step for the time of each split of each tree, parents first."""
    for t in range(trees.roots.size):
        _resample_tree(rng, prior, trees, nodes, preorder(trees, trees.roots[t], nodes))


@njit(cache=True)
def _resample_tree(rng, prior, trees, nodes, n_nodes):
    for k in range(n_nodes):
        node = nodes[k]
        if trees.column[node] < 0:
            continue
        low, high = parent_time_of(trees, node), prior.lifetime
        left, right = trees.left[node], trees.right[node]
        if trees.column[left] >= 0:
            high = min(high, trees.time[left])
        if trees.column[right] >= 0:
            high = min(high, trees.time[right])
        slope = trees.rate[left] + trees.rate[right] - trees.rate[node]
        trees.time[node] = low + truncated_exponential(rng, -slope, high - low)


register(
    MondrianProcess,
    node_summary=node_summary,
    log_split=log_split,
    log_stop=log_stop,
    draw_time=draw_time,
    log_split_at=log_split_at,
    draw_column=draw_column,
    log_column=log_column,
    column_weight=column_weight,
    is_valid_time=is_valid_time,
    add_time_terms=add_time_terms,
    resample_times=resample_times,
    node_summary_of_set=node_summary_of_set,
    draw_set_column=draw_set_column,
    log_set_column=log_set_column,
)
