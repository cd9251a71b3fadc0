"""Splits and leaves of hard trees in plain terms: coins are thrown, slopes stand in columns."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.cells import LEFT, SET
from pymc_trees.predictors.hard import hashed_sides
from pymc_trees.predictors.packed import CONSTANT, LINEAR, SOFT, PackedForest


class Splits(NamedTuple):
    """Of all split nodes."""

    column: np.ndarray
    """(S,) int."""
    cut: np.ndarray
    """(S,) a number; of a set of levels its bits."""
    is_set: np.ndarray
    """(S,) bool."""
    missing_left: np.ndarray
    """(S,) bool: where a missing cell goes."""


def splits_of(forest: PackedForest) -> Splits:
    """Splits of trees that are not soft."""
    links = forest.links
    if forest.mixed:
        left = links.rule_kind & LEFT != 0
    else:
        left = hashed_sides(forest)
    is_set = links.rule_kind >= SET
    return Splits(links.column.astype(np.int64), links.cut, is_set, left)


def levels_in(bits: float, levels: int) -> list[int]:
    """Codes of the levels in a set."""
    return [k for k in range(levels) if (int(bits) >> k) & 1]


class Leaves(NamedTuple):
    """Leaf values, and the columns that they multiply where leaves have slopes."""

    values: np.ndarray
    """(L, K) outputs; with slopes (L, 1 + q): intercept, then a slope for each column."""
    columns: np.ndarray
    """(q,) columns with slopes."""
    scale: np.ndarray
    """(q, 4) mean, sd, least and greatest cell of each of them."""
    clipped: bool
    """Whether lines end at the extremes."""


def leaves_of(forest: PackedForest) -> Leaves:
    """Leaves of trees that are not soft."""
    if forest.kind != LINEAR:
        return Leaves(forest.values, np.zeros(0, np.int64), np.zeros((0, 4)), False)
    slopes, values = forest.arrays["slopes"], forest.values
    scale = slopes[2:].reshape(-1, 4)
    columns = np.flatnonzero(scale[:, 1] > 0)
    dense = np.zeros((len(values), 1 + len(columns)))
    dense[:, 0] = values[:, 0]
    if slopes[0] == 0.0:  # one slope, in the column that the code names
        code = np.abs(values[:, 2]).astype(np.int64)
        own = np.flatnonzero((code > 0) & (code <= len(columns)))
        dense[own, code[own]] = values[own, 1]
    else:
        dense[:, 1:] = values[:, 1:-1]
    return Leaves(dense, columns, scale[columns], bool(slopes[1] != 0.0))


def check_hard(forest, what: str, soft: bool = False) -> None:
    """Raise an error for trees of other kinds; soft ones may be allowed."""
    if forest.kind in (CONSTANT, LINEAR) or (soft and forest.kind == SOFT):
        return
    trees = "soft trees, in which a row goes both ways at each split"
    if forest.kind != SOFT:
        trees = "Mondrian trees, which a row may leave at any node"
    raise ValueError(f"{what}: {forest.about['name']} has {trees}. Use save() and load() instead.")
