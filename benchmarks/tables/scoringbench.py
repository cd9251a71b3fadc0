"""`BARTRegressor` with the interface that ScoringBench asks of a model.

ScoringBench (repository jonaslandsgesell/ScoringBench) scores predicted laws as histograms, whose
bins may differ from row to row. In its ``models.py``:

    from benchmarks.tables.scoringbench import BARTWrapper
    model_factories["pymc_trees"] = BARTWrapper
"""

import warnings
from dataclasses import dataclass

import numpy as np

import pymc_trees as pmt

BULK = np.arange(1, 100) / 100
TAILS = 10.0 ** -np.arange(5, 2, -1)
LEVELS = np.concatenate([TAILS, [0.003], BULK, [0.997], 1 - TAILS[::-1]])
"""Probabilities below the edges of the bins; the outermost bins have what lies beyond, too."""


@dataclass
class DistributionPrediction:
    """The fields that ScoringBench's class of this name has."""

    probas: np.ndarray
    """(n, bins), rows sum to 1"""
    bin_edges: np.ndarray
    """(n, bins + 1)"""
    bin_midpoints: np.ndarray
    """(n, bins)"""
    mean: np.ndarray
    """(n,)"""


class BARTWrapper:
    """A `BARTRegressor`; settings are its own."""

    def __init__(self, **settings):
        self.regressor = pmt.BARTRegressor(**settings)

    def fit(self, X, y):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.regressor.fit(X, np.asarray(y, dtype=float))
        return self

    def predict(self, X):
        return self.regressor.predict(X)

    def predict_distribution(self, X) -> DistributionPrediction:
        law = self.regressor.predict_dist(X)
        return of_quantiles(LEVELS, law.ppf(LEVELS), law.mean())


def of_quantiles(levels, quantiles, mean) -> DistributionPrediction:
    """Bins between quantiles that rise from left to right."""
    edges = np.maximum.accumulate(quantiles, axis=1)
    inner = np.diff(levels)
    inner[[0, -1]] += levels[0], 1 - levels[-1]
    return DistributionPrediction(
        probas=np.broadcast_to(inner, (len(edges), inner.size)).copy(),
        bin_edges=edges,
        bin_midpoints=(edges[:, 1:] + edges[:, :-1]) / 2,
        mean=mean,
    )
