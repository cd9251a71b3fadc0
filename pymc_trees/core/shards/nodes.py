"""The driver's data on nodes whose rows are elsewhere, and prior terms computed from them.

The distribution of a node's rule depends on its rows through the columns that vary in it, and the
smallest and largest cell of the split column: `columns.rules` and `priors.by_depth` in terms of
these.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.design import Design
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import Trees
from pymc_trees.core.priors.cgm import CGMPrior


class Scattered(NamedTuple):
    """A forest without its rows, and its prior."""

    trees: Trees
    """Its ``leaf_of`` has no columns."""
    design: Design
    """Without cells."""
    prior: CGMPrior
    varies: np.ndarray
    """(N, p) bool: whether the rows of a node have two different cells in a column that may be
    split."""
    fixed: np.ndarray
    """(N,) int64: leaf values less the prior mean, in units of `fixed_point`."""
    sum: np.ndarray
    """(N,) int64: residuals of the rows of each leaf of the open tree, the same."""


class Drafted(NamedTuple):
    """Arrays that drafts and decisions write to; N places each."""

    nodes: np.ndarray
    """int32: the tree in preorder."""
    below: np.ndarray
    """int32: a subtree in preorder."""
    place: np.ndarray
    """int32, by node: where it stands there."""
    column: np.ndarray
    """int32, by place: proposed split column, -1 for a leaf."""
    cut: np.ndarray
    """float64, by place."""
    left: np.ndarray
    """int32, by place: place of the left child."""
    right: np.ndarray
    """int32, by place."""
    log_cut: np.ndarray
    """float64, by place: log density of the cut."""
    log_column: np.ndarray
    """float64, by place: log probability of the column."""
    unsplittable: np.ndarray
    """bool, by node: proposed ``Trees.unsplittable``."""
    moved: np.ndarray
    """int32, by place: the node that it became."""
    stats: np.ndarray
    """(2,) float64."""


def make_drafted(max_nodes: int) -> Drafted:
    """Arrays for a forest of so many nodes; three places are the least that a draft takes."""
    most = max(max_nodes, 3)
    kinds = ("i4", "i4", "i4", "i4", "f8", "i4", "i4", "f8", "f8", "?", "i4")
    return Drafted(*(np.zeros(most, dtype=kind) for kind in kinds), np.zeros(2))


@njit(cache=True)
def draw_column(rng, prior, varies):
    """Draw a column by weight among those that vary in a node; at least one must."""
    weights = prior.weights
    total, drawn = 0.0, -1
    for j in range(weights.size):
        if varies[j]:
            total += weights[j]
    point = rng.random() * total
    for j in range(weights.size):
        if varies[j]:
            drawn = j
            point -= weights[j]
            if point < 0.0:
                break
    return drawn


@njit(cache=True)
def log_column(prior, varies, column):
    """Log probability of that column."""
    total = 0.0
    for j in range(varies.size):
        if varies[j]:
            total += prior.weights[j]
    return np.log(prior.weights[column] / total)


@njit(cache=True)
def is_alike(varies):
    """Whether no column varies, so that a node cannot split."""
    for j in range(varies.size):
        if varies[j]:
            return False
    return True
