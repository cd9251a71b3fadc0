"""The mean of a function over random columns that rows lack, in one draw."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.tensor import matrix, vector

from pymc_trees.core.columns.cells import MISSING
from pymc_trees.posterior.draws import StoredDraws
from pymc_trees.posterior.reading.column_laws import ColumnLaw, cells_of, log_likelihood
from pymc_trees.posterior.reading.functions import BLOCK
from pymc_trees.predictors.integration import (
    all_pairs,
    all_points,
    layers_of,
    mean_over,
)


class Drawn(NamedTuple):
    """What the laws of columns take of the draws."""

    variables: list[Variable]
    draws: list[StoredDraws]

    def at(self, chain: int, draw: int) -> list[np.ndarray]:
        """Their values."""
        return [np.array(one[chain, draw], order="C") for one in self.draws]


class Cells(NamedTuple):
    """Of a column, at some rows."""

    points: np.ndarray
    """(k,)"""
    shares: np.ndarray
    """(n, k) probabilities, given Normal measurements."""
    log: np.ndarray
    """(n, k) or (n, 1), of measurements: given the cell, or given the row alone."""


class CompiledLaw:
    """The law of a column at rows of a table.

    Parameters
    ----------
    law : ColumnLaw
        As a graph.
    whole : list of Variable
        `ColumnLaw.expressions`, each with an entry for each row.
    drawn : Drawn
        Variables that they take.
    replaced : mapping
        What others are, for rows.
    at : Variable
        The rows.
    place : int
        The column of the table.
    """

    def __init__(self, law: ColumnLaw, whole, drawn: Drawn, replaced: Mapping, at, place: int):
        self.law, self.place, self._cells = law, place, cells_of(law)
        values = [v.type(v.name) for v in drawn.variables]
        replaced = dict(replaced) | dict(zip(drawn.variables, values, strict=True))
        each = clone_replace(list(whole), replaced, rebuild_strict=False)
        first = len(law.parameters) + len(law.errors)
        ignored = {"on_unused_input": "ignore"}
        self._parameters = pm.compile([at, *values], each[:first], **ignored)
        self._likelihoods: dict[str, Callable] = {}
        for name, of in law.likelihoods.items():
            seen, taken = vector("seen", dtype="float64"), each[first : first + len(of)]
            first += len(of)
            log = log_likelihood(law, name, taken, seen)
            self._likelihoods[name] = pm.compile([at, seen, *values], log, **ignored)

    def cells(
        self, rows: np.ndarray, measured: Mapping[str, np.ndarray], values: list, cuts
    ) -> Cells:
        """Of (n, columns) rows with (n,) measurements; of single values where cuts are None."""
        numbers = self._parameters(rows, *values)
        k, n = len(self.law.parameters), len(rows)
        parameters, log = numbers[:k], np.zeros((n, 1))
        for name, error in zip(self.law.errors, numbers[k:], strict=True):
            parameters, of_row = _given_measurement(parameters, measured[name], error)
            log[:, 0] += of_row
        cuts = None if self._likelihoods else cuts
        points, shares = self._cells.cells(self.law.name, cuts, parameters)
        if self._likelihoods:
            log = np.zeros(shares.shape)
            held = np.repeat(rows, len(points), axis=0)
            held[:, self.place] = np.tile(points, n)
            for name, likelihood in self._likelihoods.items():
                seen = np.repeat(measured[name], len(points))
                known = np.flatnonzero(seen != MISSING)
                found = likelihood(np.ascontiguousarray(held[known]), seen[known], *values)
                log.reshape(-1)[known] += found
        return Cells(points, shares, log)


class Integral:
    """A function of rows in a draw, unknown columns integrated out.

    Parameters
    ----------
    function : MarginalFunction
        Of all draws.
    chain, draw : int
        The draw.
    """

    def __init__(self, function, chain: int, draw: int):
        self._function, self._at = function, (chain, draw)
        known = function.at(chain, draw)
        self._known = lambda rows: function.func(known(rows))
        self.places = function.places
        self._values: list[np.ndarray] | None = None
        self._cuts: dict[str, np.ndarray | None] = {}

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """(..., n) values at (n, more columns) rows."""
        function, width = self._function, self._function.table.width
        columns, places = list(self.places), list(self.places.values())
        unknown = rows[:, places] == MISSING
        own = np.flatnonzero(unknown.any(axis=1) & (rows[:, -1] != MISSING))
        if own.size:
            for k, column in enumerate(columns):
                drawn = function.own_draws[column][self._at]
                which = own[unknown[own, k]]
                rows[which, places[k]] = drawn[rows[which, -1].astype(np.int64)]
            unknown[own] = False
        if not unknown.any():
            return self._known(np.ascontiguousarray(rows[:, :width]))
        values: np.ndarray = np.empty(0)
        for k, pattern in enumerate(np.unique(unknown, axis=0)):
            which = np.flatnonzero((unknown == pattern).all(axis=1))
            named = [c for c, is_unknown in zip(columns, pattern, strict=True) if is_unknown]
            some = self._integral(rows[which], named)
            if k == 0:
                values = np.empty((*some.shape[:-1], len(rows)))
            values[..., which] = some
        return values

    def _integral(self, rows: np.ndarray, named: list[str]) -> np.ndarray:
        """Values at rows that lack some columns, some rows at a time."""
        if not named:
            return self._known(np.ascontiguousarray(rows[:, : self._function.table.width]))
        function = self._function
        layers = self._layers(named)
        inside = {c for layer in layers for c in layer if self._is_taken(c, named)}
        cuts = {c: None if c in inside else self._cuts_of(c) for c in named}
        cells = np.prod([function.n_cells(c, cuts[c]) for c in named], dtype=float)
        width = max(1, int(BLOCK / (cells * max(1, int(np.prod(function.outputs))))))
        parts = (rows[a : a + width] for a in range(0, len(rows), width))
        return np.concatenate([self._mean(some, layers, cuts) for some in parts], axis=-1)

    def _layers(self, named: list[str]) -> list[list[str]]:
        """Columns after those that their laws take, or an error."""
        function = self._function
        after = {c: function.laws[c].after & set(named) for c in named}
        layers = layers_of(after)
        done = {c for layer in layers for c in layer}
        for column, both in after.items():
            wrong = [c for c in both if c not in done or not function.laws[c].is_discrete]
            if column not in done or wrong:
                raise ValueError(
                    f"The prior of the random column {column!r} depends on "
                    f"{sorted(wrong or both)}, which are unknown too: "
                    f"{function.remedy(sorted(wrong or both))}."
                )
        return layers

    def _is_taken(self, column: str, named: list[str]) -> bool:
        """Whether more than trees takes the values of a discrete column."""
        function = self._function
        return function.laws[column].is_discrete and (
            column in function.beside or any(column in function.laws[c].after for c in named)
        )

    def _mean(self, rows: np.ndarray, layers: Sequence[Sequence[str]], cuts) -> np.ndarray:
        """Sums over all cells of the columns."""
        n, width = len(rows), self._function.table.width
        if self._values is None:
            self._values = self._function.drawn.at(*self._at)
        weights, log = np.ones((n, 1)), np.zeros((n, 1))
        for layer in layers:
            table, measured = np.ascontiguousarray(rows[:, :width]), self._measured(rows)
            each = []
            share, of_cells = np.ones((len(rows), 1)), np.zeros((len(rows), 1))
            for column in layer:
                law = self._function.compiled[column]
                points, shares, of_column = law.cells(table, measured, self._values, cuts[column])
                of_column = np.broadcast_to(of_column, shares.shape)
                share, of_cells = all_pairs(share, shares), all_pairs(of_cells, of_column, np.add)
                each.append(points)
            points = all_points(each)
            rows = np.repeat(rows, len(points), axis=0)
            rows[:, [self.places[c] for c in layer]] = np.tile(
                points, (len(rows) // len(points), 1)
            )
            weights = (weights.reshape(-1, 1) * share).reshape(n, -1)
            log = (log.reshape(-1, 1) + of_cells).reshape(n, -1)
        if log.any():
            weights = self._given_measurements(weights, log, [c for one in layers for c in one])
        values = self._known(np.ascontiguousarray(rows[:, :width]))
        values = values.reshape(*values.shape[:-1], n, -1)
        return mean_over(values, weights, axis=-1)

    def _measured(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        first = self._function.table.width
        return {name: rows[:, first + k] for k, name in enumerate(self._function.measured)}

    def _given_measurements(self, weights: np.ndarray, log: np.ndarray, named) -> np.ndarray:
        """Probabilities of cells given measurements, from prior ones."""
        most = np.where(weights > 0.0, log, -np.inf).max(axis=1, keepdims=True)
        if not np.isfinite(most).all():
            by = [c for c in self._function.measured if self._function.measures(c, named)]
            raise ValueError(
                f"The measurements {by} are impossible at some row, whatever {named} is: give "
                "numbers that they can be, or leave them out."
            )
        weights = weights * np.exp(np.where(weights > 0.0, log - most, 0.0))
        return weights / weights.sum(axis=1, keepdims=True)

    def _cuts_of(self, column: str) -> np.ndarray | None:
        if column not in self._cuts:
            self._cuts[column] = self._function.cuts_in(*self._at, column)
        return self._cuts[column]


def compiled_law(law: ColumnLaw, parts, drawn: Drawn, table, fixed: Mapping, place: int):
    """`CompiledLaw` of the rows of a table."""
    at = matrix("X", dtype="float64")
    whole = [one.variable for one in parts]
    return CompiledLaw(law, whole, drawn, table.parts(at) | dict(fixed), at, place)


def _given_measurement(prior: Sequence[np.ndarray], seen: np.ndarray, error: np.ndarray):
    """Mean and sd of a Normal given a Normal measurement, where there is one; its log density."""
    mean, sd = prior
    is_seen = seen != MISSING
    precision, of_error = 1.0 / sd**2, np.where(is_seen, 1.0 / error**2, 0.0)
    total = precision + of_error
    variance, off = sd**2 + error**2, np.where(is_seen, seen - mean, 0.0)
    log = np.where(is_seen, -0.5 * (off**2 / variance + np.log(variance)), 0.0)
    return [(precision * mean + of_error * seen) / total, 1.0 / np.sqrt(total)], log
