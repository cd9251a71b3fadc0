"""Summaries of values over the draws."""

import numpy as np

from pymc_trees.arguments import check_share

KINDS_OF_DRAWS = ("mean", "sd", "quantiles")
KINDS = (*KINDS_OF_DRAWS, "interval", "class")


def probabilities_of(kind, quantiles, level) -> list[float]:
    """Of the quantiles that are asked for."""
    if kind == "interval":
        tail = (1.0 - check_share("level", level)) / 2.0
        return [tail, 1.0 - tail]
    if kind != "quantiles":
        return []
    q = np.atleast_1d(np.asarray((0.05, 0.5, 0.95) if quantiles is None else quantiles, float))
    if q.size == 0 or not ((q > 0) & (q < 1)).all():
        raise ValueError(f"quantiles={q.tolist()}: must lie strictly between 0 and 1.")
    return q.tolist()


def summary(values: np.ndarray, kind: str, probabilities: list[float]) -> np.ndarray:
    """Of (D, n, ...) values."""
    if kind == "mean":
        return values.mean(axis=0)
    if kind == "sd":
        return values.std(axis=0)
    return np.moveaxis(np.quantile(values, probabilities, axis=0), 0, -1)
