"""Rows that lack random columns, as rows at all cells of these, with probabilities."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pymc_trees.core.columns.cells import MISSING, SET
from pymc_trees.predictors.integration import (
    LAWS,
    Discrete,
    all_pairs,
    all_points,
    layers_of,
    mean_over,
)
from pymc_trees.predictors.packed import CONSTANT
from pymc_trees.predictors.program import needed


class RandomColumn(NamedTuple):
    """A column of a table that has a law."""

    table: int
    column: int
    name: str
    law: str | None
    """A name of `integration.LAWS`; None where it is not held."""
    of: list[int]
    """Instructions of its parameters."""
    after: list[str]
    """Other random columns that these take."""
    why: str
    """Why it is not held."""
    values: int = 0
    """How many a discrete column has."""

    @property
    def is_discrete(self) -> bool:
        """Whether it has whole numbers."""
        return isinstance(LAWS.get(self.law or ""), Discrete)


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
        self._widths = [len(table["rules"]) for table in about["tables"]]
        self._cuts = {one.name: self._cuts_of(one, forests) for one in self.columns}

    def in_table(self, table: int) -> int:
        """How many columns of a table are random, the last ones."""
        return sum(one.table == table for one in self.columns)

    def _are_rows(self, k: int, table: int) -> bool:
        """Whether an instruction is the rows of a table."""
        while self._program[k]["op"] == "cast":
            [k] = self._program[k]["of"]
        return self._program[k] == {"op": "rows", "of": [], "table": table}

    def _cuts_of(self, one: RandomColumn, forests) -> np.ndarray | None:
        """Where trees cut a column; None where they split it by sets."""
        found = [np.empty(0)]
        at_table = {
            step["forest"]
            for step in self._program
            if step["op"] == "forest" and self._are_rows(step["of"][0], one.table)
        }
        for forest in (forests[k] for k in sorted(at_table)):
            if forest.kind == CONSTANT:
                own = forest.links.column == one.column
                if (forest.links.rule_kind[own] >= SET).any():
                    return None
                found.append(forest.links.cut[own])
        return np.unique(np.concatenate(found))

    def lacking(self, tables: Sequence[np.ndarray], results: Sequence[int]) -> list[RandomColumn]:
        """Columns with an unknown cell that instructions take, or that laws of such columns do."""
        unknown = [c for c in self.columns if (tables[c.table][:, c.column] == MISSING).any()]
        taken: list[RandomColumn] = []
        steps = set(needed(self._program, results))
        while new := [c for c in unknown if c not in taken and self._is_taken(c, steps, taken)]:
            taken += new
            steps |= set(needed(self._program, [k for one in new for k in one.of]))
        return [one for one in unknown if one in taken]

    def _is_taken(self, one: RandomColumn, steps: set[int], by: Sequence[RandomColumn]) -> bool:
        if any(one.name in other.after for other in by):
            return True
        return any(
            self._are_rows(of, one.table) and self._takes(self._program[k], one)
            for k in steps
            for of in self._program[k].get("of", ())
        )

    def _takes(self, step: Mapping[str, Any], one: RandomColumn) -> bool:
        """Whether an instruction on the rows of a table takes a column of it."""
        if step["op"] == "cast":  # what follows does, or not
            return False
        if step["op"] != "pick" or len(step["index"]) < 2:
            return True
        last = step["index"][-1]
        if isinstance(last, int):
            return last == one.column
        return one.column in range(*slice(*last).indices(self._widths[one.table]))

    def cells(self, lacking: Sequence[RandomColumn]) -> int:
        """Into how many a row becomes, at the most."""
        return int(np.prod([self._cells_of(c) for c in lacking]))

    def _cells_of(self, one: RandomColumn) -> int:
        cuts = self._cuts[one.name]
        return max(1, one.values) if one.is_discrete or cuts is None else cuts.size + 1

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
        layers = self._layers(lacking, results)
        n, weights = len(tables[0]), np.ones((n_draws, len(tables[0]), 1))
        rows, others = list(tables), list(beside)
        for layer in layers:
            m, share, grids = len(rows[0]), np.ones((n_draws, len(rows[0]), 1)), []
            for one in layer:
                points, own = self._shares(one, results, lacking, values(one.of, rows, others))
                own = np.broadcast_to(own, (n_draws, m, len(points))).copy()
                own[:, rows[one.table][:, one.column] != MISSING] = np.arange(len(points)) == 0
                share = all_pairs(share, own)
                grids.append(points)
            points = all_points(grids)
            k = len(points)
            rows = [np.repeat(table, k, axis=0) for table in rows]
            for one, at in zip(layer, points.T, strict=True):
                cells = rows[one.table][:, one.column]
                rows[one.table][:, one.column] = np.where(cells == MISSING, np.tile(at, m), cells)
            others = [np.repeat(v, k, axis=axis) for v, axis in zip(others, axes, strict=True)]
            weights = (weights.reshape(n_draws, -1, 1) * share).reshape(n_draws, n, -1)
        return Expanded(rows, others, weights)

    def _shares(self, one: RandomColumn, results, lacking, numbers) -> tuple:
        """Points of the cells of a column, and (draws, rows, cells) probabilities."""
        law, cuts = LAWS[one.law or ""], self._cuts[one.name]
        taken = any(one.name in other.after for other in lacking)
        if one.is_discrete and (taken or self._beside(one, results)):
            cuts = None
        own = law.own_axes
        parameters = []
        for v in numbers:  # of the model's types
            with_rows = v if v.ndim == 2 + own else v.reshape(len(v), 1, *v.shape[1:])
            parameters.append(with_rows.astype(np.float64))
        return law.cells(one.name, cuts, parameters)

    def _layers(self, lacking: Sequence[RandomColumn], results: Sequence[int]):
        """Columns after those that their laws take, or an error."""
        self._check(lacking, results)
        by_name = {one.name: one for one in lacking}
        layers = layers_of({one.name: set(one.after) & set(by_name) for one in lacking})
        return [[by_name[name] for name in layer] for layer in layers]

    def _check(self, lacking: Sequence[RandomColumn], results: Sequence[int]) -> None:
        """Raise an error where the law of a column is not held, or a value depends on more."""
        names = {one.name for one in lacking if not one.is_discrete}
        for one in lacking:
            why = one.why
            if one.law is not None and set(one.after) & names:
                why = f"it depends on {sorted(set(one.after) & names)}, unknown too"
            elif one.law is not None and not one.is_discrete and self._beside(one, results):
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


def averaged(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """(draws, n, ...) means over the cells of (draws, n cells, ...) values."""
    if weights is None:
        return values
    each = by_cell(values, weights)
    w = weights.reshape(*weights.shape, *[1] * (each.ndim - 3))
    return mean_over(each, w, axis=2)


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
