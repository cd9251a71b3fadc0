"""Means over unknown columns of rows: sums over cells of the columns, each with its probability.

A forest is constant in a column between two cuts, and so is all that is made of forests. Its mean
over a continuous column is a sum over the intervals between the cuts; over a discrete one over its
values, or over the groups of them that the cuts leave.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pymc_trees.predictors.special import erfc

MOST_VALUES = 10_000
"""Of a discrete column, over which sums are taken."""


class Continuous(NamedTuple):
    """A law by its distribution function."""

    cdf: Callable[..., np.ndarray]
    """At (k,) numbers, of parameters (..., 1)."""
    own_axes: int = 0
    """Of a parameter, behind those of the rows."""

    def cells(self, name: str, cuts, parameters: Sequence[np.ndarray]) -> tuple:
        """(k,) a point of each interval, and (..., k) probabilities.

        ``parameters`` are arrays (...) that broadcast; the name is for errors.
        """
        shape = np.broadcast_shapes(*(v.shape for v in parameters))
        below = np.empty((*shape, 0))
        if cuts.size:
            with np.errstate(all="ignore"):
                below = self.cdf(cuts, *(v[..., None] for v in parameters))
        below = np.broadcast_to(below, (*shape, cuts.size))
        return between(cuts), np.diff(below, axis=-1, prepend=0.0, append=1.0)


class Discrete(NamedTuple):
    """A law by the probabilities of whole numbers."""

    bounds: Callable[..., tuple[float, float]]
    """Smallest and largest of its values under any of the parameters."""
    mass: Callable[..., np.ndarray]
    """(..., k) at (k,) values, of parameters (..., 1)."""
    own_axes: int = 0

    def cells(self, name: str, cuts, parameters: Sequence[np.ndarray]) -> tuple:
        """(k,) values and (..., k) probabilities, of groups between cuts unless these are None."""
        low, high = self.bounds(*parameters)
        if not high - low < MOST_VALUES:
            raise ValueError(
                f"The random column {name!r} has {high - low + 1:.0f} values at these rows, and "
                f"sums are over {MOST_VALUES} at most: give the column in the table."
            )
        values = np.arange(low, high + 1)
        with np.errstate(all="ignore"):
            shares = self.mass(values, *(v if self.own_axes else v[..., None] for v in parameters))
        if cuts is None:
            return values, shares
        group = np.searchsorted(cuts, values)
        first = np.flatnonzero(np.diff(group, prepend=-1))
        return values[first], np.add.reduceat(shares, first, axis=-1)


def _binomial(k, n, p):
    """Products of powers and of a coefficient that is made of logs of factorials."""
    log = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, max(np.max(n), np.max(k)) + 1)))])
    inside = (k >= 0) & (k <= n)
    size, up = np.broadcast_to(n, inside.shape).astype(np.int64), k.astype(np.int64)
    down = np.where(inside, size - up, 0)
    chosen = log[size] - log[up] - log[down]
    with np.errstate(all="ignore"):
        odds = np.where(up > 0, up * np.log(p), 0.0) + np.where(down > 0, down * np.log1p(-p), 0.0)
    return np.where(inside, np.exp(chosen + odds), 0.0)


LAWS: dict[str, Continuous | Discrete] = {
    "normal": Continuous(lambda x, mean, sd: 0.5 * erfc((mean - x) / (sd * np.sqrt(2.0)))),
    "uniform": Continuous(lambda x, low, high: np.clip((x - low) / (high - low), 0.0, 1.0)),
    "exponential": Continuous(lambda x, scale: -np.expm1(-np.maximum(x, 0.0) / scale)),
    "categorical": Discrete(lambda p: (0, p.shape[-1] - 1), lambda x, p: p, own_axes=1),
    "bernoulli": Discrete(lambda p: (0, 1), lambda x, p: np.where(x > 0, p, 1.0 - p)),
    "binomial": Discrete(lambda n, p: (0, np.max(n)), _binomial),
    "discrete_uniform": Discrete(
        lambda low, high: (np.min(low), np.max(high)),
        lambda x, low, high: ((x >= low) & (x <= high)) / (high - low + 1.0),
    ),
}
"""Of columns, by name."""


def between(cuts: np.ndarray) -> np.ndarray:
    """A point of each interval between cuts, and beyond them."""
    if cuts.size == 0:
        return np.zeros(1)
    first, last = cuts[0] - 1.0 - abs(cuts[0]), cuts[-1] + 1.0 + abs(cuts[-1])
    return np.concatenate([[first], 0.5 * (cuts[1:] + cuts[:-1]), [last]])


def layers_of(after: Mapping[str, set[str]]) -> list[list[str]]:
    """Columns one group after another, each after those that its law takes.

    ``after`` has the names of all that each takes; of two that take each other, neither is in a
    group.
    """
    layers: list[list[str]] = []
    left = list(after)
    while layer := [name for name in left if not after[name] & set(left)]:
        layers.append(layer)
        left = [name for name in left if name not in layer]
    return layers


def all_points(each: Sequence[np.ndarray]) -> np.ndarray:
    """(cells, columns) all combinations of the points of columns, the last one fastest."""
    return np.stack(np.meshgrid(*each, indexing="ij"), axis=-1).reshape(-1, len(each))


def all_pairs(a: np.ndarray, b: np.ndarray, of: Callable = np.multiply) -> np.ndarray:
    """(..., k l) of (..., k) and (..., l) arrays: what a function makes of all pairs."""
    return of(a[..., :, None], b[..., None, :]).reshape(*a.shape[:-1], -1)


def mean_over(values: np.ndarray, weights: np.ndarray, axis: int) -> np.ndarray:
    """Sums of values times weights; what has no weight may be no number."""
    with np.errstate(invalid="ignore"):
        return np.where(weights > 0.0, weights * values, 0.0).sum(axis=axis)
