"""Predicted laws of rows, and the scores of them: all methods are scored by the same code."""

import numpy as np
from scipy import stats

from pymc_trees.estimators.mixture import Mixture

LEVELS = np.arange(1, 100) / 100
"""Probabilities whose pinball losses make the CRPS."""
INTERVALS = (0.5, 0.9, 0.95)
MOST = 500
"""Draws of a mixture that the CRPS is computed from, evenly taken: 99 quantiles of each row."""


class Interpolated:
    """From quantiles at levels: the distribution function linear between, exponential beyond."""

    def __init__(self, levels: np.ndarray, quantiles: np.ndarray, mean: np.ndarray):
        self.levels, self._mean = levels, mean
        width = 1e-6 * np.ptp(quantiles)
        rising = np.sort(quantiles, axis=1) + width * np.arange(len(levels))
        self.quantiles = rising
        slopes = np.diff(levels) / np.diff(rising, axis=1)
        self.rate = slopes[:, [0]] / levels[0], slopes[:, [-1]] / (1 - levels[-1])
        self.slopes = slopes

    def mean(self):
        return self._mean

    def logpdf(self, y):
        low, high = self.quantiles[:, 0], self.quantiles[:, -1]
        at = np.array([np.searchsorted(q, v) for q, v in zip(self.quantiles, y, strict=True)])
        inner = np.clip(at - 1, 0, self.slopes.shape[1] - 1)
        found = np.log(self.slopes[np.arange(len(y)), inner])
        left, right = (one[:, 0] for one in self.rate)
        below = np.log(self.levels[0] * left) - left * (low - y)
        above = np.log((1 - self.levels[-1]) * right) - right * (y - high)
        return np.where(y < low, below, np.where(y > high, above, found))

    def ppf(self, q):
        found = [np.interp(q, self.levels, row) for row in self.quantiles]
        left, right = self.rate
        found = np.array(found)
        tail = np.log(np.maximum(q / self.levels[0], 1e-300)) / left
        found = np.where(q < self.levels[0], self.quantiles[:, [0]] + tail, found)
        tail = -np.log((1 - q) / (1 - self.levels[-1])) / right
        return np.where(q > self.levels[-1], self.quantiles[:, [-1]] + tail, found)


class Gaussian:
    """A Normal law for each row."""

    def __init__(self, mean, sd):
        self._mean, self.law = mean, stats.norm(mean, sd)

    def mean(self):
        return self._mean

    def logpdf(self, y):
        return self.law.logpdf(y)

    def ppf(self, q):
        return np.stack([self.law.ppf(one) for one in np.ravel(q)], axis=-1)


class Histogram:
    """Uniform within the bins of each row, as ScoringBench reads its predictions.

    A number beyond the outermost edges has the density of the bin beside it, as there.
    """

    def __init__(self, of):
        self.edges, self._mean, self.probas = of.bin_edges, of.mean, of.probas
        self.below = np.concatenate(
            [np.zeros((len(of.probas), 1)), np.cumsum(of.probas, axis=1)], axis=1
        )
        self.density = of.probas / np.maximum(np.diff(of.bin_edges, axis=1), 1e-10)

    def mean(self):
        return self._mean

    def logpdf(self, y):
        at = [np.searchsorted(row, v) - 1 for row, v in zip(self.edges, y, strict=True)]
        inner = np.clip(at, 0, self.density.shape[1] - 1)
        return np.log(np.maximum(self.density[np.arange(len(y)), inner], 1e-10))

    def ppf(self, q):
        return np.array([np.interp(q, b, e) for b, e in zip(self.below, self.edges, strict=True)])


def thinned(law):
    """A mixture over many draws, over fewer of them; any other law as it is."""
    if not isinstance(law, Mixture) or len(law.loc) <= MOST:
        return law
    step = -(-len(law.loc) // MOST)
    return Mixture(*(None if one is None else one[::step] for one in (law.loc, law.scale, law.df)))


def scores(law, y: np.ndarray) -> dict[str, float]:
    """NLL, CRPS, RMSE, and the share of rows within equal-tailed intervals."""
    quantiles = thinned(law).ppf(LEVELS)
    off = y[:, None] - quantiles
    crps = 2 * np.maximum(LEVELS * off, (LEVELS - 1) * off).mean()
    found = {
        "nll": -float(law.logpdf(y).mean()),
        "crps": float(crps),
        "rmse": float(np.sqrt(np.mean((law.mean() - y) ** 2))),
    }
    for p in INTERVALS:
        low, high = law.ppf(np.array([0.5 - p / 2, 0.5 + p / 2])).T
        found[f"cover{100 * p:.0f}"] = float(np.mean((y >= low) & (y <= high)))
    return found
