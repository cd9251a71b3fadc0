"""The mean of a function over random columns that rows lack, in one draw."""

import numpy as np

from pymc_trees.core.columns.cells import MISSING
from pymc_trees.posterior.reading.functions import BLOCK, HeldRows
from pymc_trees.predictors.random_columns import between


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
        self._cuts: dict[str, np.ndarray] = {}

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
        """Values at rows that lack some columns: sums over the intervals between cuts."""
        function = self._function
        table = np.ascontiguousarray(rows[:, : function.table.width])
        if not named:
            return self._known(table)
        for column in named:
            if both := sorted(function.laws[column].after & set(named)):
                raise ValueError(
                    f"The prior of the random column {column!r} depends on {both}, which are "
                    f"unknown too: {function.remedy(both)}."
                )
        laws = function.laws_at(*self._at, rows)
        weights, grids = np.ones((len(rows), 1)), []
        for column in named:
            cuts = self._cuts_of(column)
            share = _shares(function.cdfs[column], cuts, laws[column])
            weights = (weights[:, :, None] * share[:, None]).reshape(len(rows), -1)
            grids.append(between(cuts))
        points = np.stack(np.meshgrid(*grids, indexing="ij"), axis=-1).reshape(-1, len(named))
        places = [self.places[column] for column in named]
        width = max(1, BLOCK // (len(points) * max(1, int(np.prod(function.outputs)))))
        return np.concatenate(
            [
                self._mean(table[a : a + width], places, points, weights[a : a + width])
                for a in range(0, len(rows), width)
            ],
            axis=-1,
        )

    def _mean(self, table, places, points, weights) -> np.ndarray:
        values = self._known(HeldRows(table, places, points))
        values = values.reshape(*values.shape[:-1], len(points), len(table))
        of_each = weights.T
        with np.errstate(invalid="ignore"):
            return np.where(of_each > 0, of_each * values, 0.0).sum(axis=-2)

    def _cuts_of(self, column: str) -> np.ndarray:
        if column not in self._cuts:
            self._cuts[column] = self._function.cuts_in(*self._at, column)
        return self._cuts[column]


def _shares(cdf, cuts: np.ndarray, parameters: list[np.ndarray]) -> np.ndarray:
    """(n, cuts + 1) probabilities of the intervals."""
    n = len(parameters[0])
    below = cdf(cuts, *parameters) if cuts.size else np.empty((n, 0))
    below = np.broadcast_to(below, (n, cuts.size))
    return np.diff(below, axis=1, prepend=0.0, append=1.0)
