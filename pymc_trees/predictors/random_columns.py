"""Rows that lack random columns, as rows at all intervals between cuts, with probabilities.

A forest is constant in a column between two cuts, so means over the law of the column are sums.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pymc_trees.core.columns.cells import MISSING
from pymc_trees.predictors.packed import CONSTANT
from pymc_trees.predictors.program import needed
from pymc_trees.predictors.special import erfc

CDFS: dict[str, Callable[..., np.ndarray]] = {
    "normal": lambda x, mean, sd: 0.5 * erfc((mean - x) / (sd * np.sqrt(2.0))),
    "uniform": lambda x, low, high: np.clip((x - low) / (high - low), 0.0, 1.0),
    "exponential": lambda x, scale: -np.expm1(-np.maximum(x, 0.0) / scale),
}
"""Distribution functions of the laws that a predictor holds, by name."""


class RandomColumn(NamedTuple):
    """A column of a table that has a law."""

    table: int
    column: int
    name: str
    law: str | None
    """A name of `CDFS`; None where it is not held."""
    of: list[int]
    """Instructions of its parameters."""
    after: list[str]
    """Other random columns that these take."""
    why: str
    """Why it is not held."""


class Part(list):
    """Values of instructions at rows, whose cells may be unknown."""

    weights: np.ndarray | None = None
    """(draws, n, cells): then there are the rows at each cell, of one row after another."""


class Expanded(NamedTuple):
    """Rows at all cells."""

    tables: list[np.ndarray]
    beside: list[np.ndarray]
    weights: np.ndarray
    """(draws, n, cells)."""


class Unknown:
    """What a predictor does with unknown cells.

    Parameters
    ----------
    about : mapping
        Facts of a predictor.
    forests : list of PackedForest
        Its forests.
    """

    def __init__(self, about: Mapping[str, Any], forests: Sequence[Any]):
        self.columns = [RandomColumn(**one) for one in about.get("random", [])]
        self._program = about["program"]
        self._cuts = {one.name: self._cuts_of(one, about, forests) for one in self.columns}

    def in_table(self, table: int) -> int:
        """How many columns of a table are random, the last ones."""
        return sum(one.table == table for one in self.columns)

    def _cuts_of(self, one: RandomColumn, about, forests) -> np.ndarray:
        p = len(about["tables"][one.table]["rules"])
        found = [
            forest.links.cut[forest.links.column == one.column]
            for forest in forests
            if forest.kind == CONSTANT and forest.p == p
        ]
        return np.unique(np.concatenate([np.empty(0), *found]))

    def lacking(self, tables: Sequence[np.ndarray]) -> list[RandomColumn]:
        """Columns with an unknown cell."""
        return [c for c in self.columns if (tables[c.table][:, c.column] == MISSING).any()]

    def cells(self, tables: Sequence[np.ndarray]) -> int:
        """Into how many a row becomes."""
        return int(np.prod([self._cuts[c.name].size + 1 for c in self.lacking(tables)]))

    def expanded(
        self,
        lacking: Sequence[RandomColumn],
        results: Sequence[int],
        values: Callable[..., list[np.ndarray]],
        n_draws: int,
        tables: list[np.ndarray],
        beside: list[np.ndarray],
        axes: Sequence[int],
    ) -> Expanded:
        """Rows at all cells of the columns that they lack.

        ``values`` are those of instructions at rows, and ``axes`` those of the rows in the data
        beside them.
        """
        self._check(lacking, results)
        n = len(tables[0])
        weights, grids = np.ones((n_draws, n, 1)), []
        for one in lacking:
            cuts, unknown = self._cuts[one.name], tables[one.table][:, one.column] == MISSING
            parameters = [v.reshape(len(v), -1)[..., None] for v in values(one.of, tables, beside)]
            with np.errstate(all="ignore"):
                below = CDFS[one.law or ""](cuts, *parameters)
            below = np.broadcast_to(below, (n_draws, n, cuts.size))
            share = np.diff(below, axis=-1, prepend=0.0, append=1.0)
            share[:, ~unknown] = np.arange(cuts.size + 1) == 0
            weights = (weights[..., None] * share[:, :, None]).reshape(n_draws, n, -1)
            grids.append(between(cuts))
        points = np.stack(np.meshgrid(*grids, indexing="ij"), axis=-1).reshape(-1, len(lacking))
        k = len(points)
        rows = [np.repeat(one, k, axis=0) for one in tables]
        for one, at in zip(lacking, points.T, strict=True):
            cells = rows[one.table][:, one.column]
            rows[one.table][:, one.column] = np.where(cells == MISSING, np.tile(at, n), cells)
        others = [np.repeat(v, k, axis=axis) for v, axis in zip(beside, axes, strict=True)]
        return Expanded(rows, others, weights)

    def _check(self, lacking: Sequence[RandomColumn], results: Sequence[int]) -> None:
        """Raise an error where the law of a column is not held, or a value depends on more."""
        names = {one.name for one in lacking}
        for one in lacking:
            why = one.why
            if one.law is not None and set(one.after) & names:
                why = f"it depends on {sorted(set(one.after) & names)}, unknown too"
            elif one.law is not None and self._beside(one, results):
                why = "what is asked takes the column beside its trees"
            if why:
                raise ValueError(
                    f"X lacks cells of the random column {one.name!r}, and the predictor cannot "
                    f"integrate over its law ({why}): give the column in X, or ask for a function "
                    "of trees alone."
                )

    def _beside(self, one: RandomColumn, results: Sequence[int]) -> bool:
        """Whether instructions take a column from its table."""
        for k in needed(self._program, results):
            step = self._program[k]
            if step["op"] == "pick" and step["index"][-1] == one.column:
                [of] = step["of"]
                if self._program[of] == {"op": "rows", "of": [], "table": one.table}:
                    return True
        return False


def between(cuts: np.ndarray) -> np.ndarray:
    """A point of each interval between cuts, and beyond them."""
    if cuts.size == 0:
        return np.zeros(1)
    first, last = cuts[0] - 1.0 - abs(cuts[0]), cuts[-1] + 1.0 + abs(cuts[-1])
    return np.concatenate([[first], 0.5 * (cuts[1:] + cuts[:-1]), [last]])


def averaged(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """(draws, n, ...) means over the cells of (draws, n cells, ...) values."""
    if weights is None:
        return values
    each = by_cell(values, weights)
    w = weights.reshape(*weights.shape, *[1] * (each.ndim - 3))
    with np.errstate(invalid="ignore"):
        return np.where(w > 0.0, w * each, 0.0).sum(axis=2)


def check_known(part: Part, what: str) -> None:
    """Raise an error for rows that lack cells, where these are to be known."""
    if part.weights is not None:
        raise ValueError(
            f"X lacks cells of random columns, over which {what} does not integrate: give them in "
            "X, or call predict or draws."
        )


def by_cell(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(draws, n, cells, ...) of (draws, n cells, ...) values."""
    _, n, k = weights.shape
    values = np.broadcast_to(values, (len(values), n * k, *values.shape[2:]))
    return values.reshape(len(values), n, k, *values.shape[2:])


def as_draws(values: Sequence[np.ndarray], weights: np.ndarray):
    """Each cell of each draw as a draw: (draws cells, n, ...) values, and their weights."""
    found = []
    for one in values:
        whole = np.broadcast_to(one, (len(weights), *one.shape[1:]))
        each = np.moveaxis(by_cell(whole, weights), 2, 1)
        found.append(each.reshape(-1, *each.shape[2:]))
    return found, np.moveaxis(weights, 2, 1).reshape(-1, weights.shape[1]) / len(weights)


def one_cell(rng: np.random.Generator, values: Sequence[np.ndarray], weights: np.ndarray):
    """(draws, n, ...) values at a cell of each draw and row, drawn by its probability."""
    share = np.cumsum(weights, axis=-1)
    u = rng.random(share.shape[:2])[..., None] * share[..., -1:]
    cell = np.minimum((share < u).sum(axis=-1), weights.shape[-1] - 1)
    found = []
    for one in values:
        each = by_cell(np.broadcast_to(one, (len(weights), *one.shape[1:])), weights)
        at = cell.reshape(*cell.shape, *[1] * (each.ndim - 2))
        found.append(np.take_along_axis(each, at, axis=2).squeeze(axis=2))
    return found
