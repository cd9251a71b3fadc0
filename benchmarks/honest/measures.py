"""How honest draws of f are: coverage, width and error, of one chain and of all pooled."""

import numpy as np
from scipy.special import logsumexp

from benchmarks.peers import metrics
from benchmarks.peers.data import Case

LEVEL = 0.95
MOST = 400
"""Draws of a chain that scores use, evenly spaced."""


def intervals(draws: np.ndarray):
    """Central intervals of draws (samples, rows)."""
    tail = (1 - LEVEL) / 2
    return np.quantile(draws, [tail, 1 - tail], axis=0)


def of_draws(f: np.ndarray, case: Case) -> dict[str, float]:
    """RMSE, and coverage and width where the function is known, of draws (samples, rows)."""
    truth = case.y_test if case.f_test is None else case.f_test
    low, high = intervals(f)
    found = {"rmse": float(np.sqrt(np.mean((f.mean(axis=0) - truth) ** 2)))}
    found["width"] = float((high - low).mean())
    if case.f_test is not None:
        found["coverage"] = float(np.mean((low <= truth) & (truth <= high)))
    return found


def log_score(f: np.ndarray, sigma: np.ndarray, y: np.ndarray) -> float:
    """Mean log density of held-out y under Normals around draws (samples, rows)."""
    sd = sigma.reshape(-1, 1)
    at = -0.5 * ((y - f) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)
    return float((logsumexp(at, axis=0) - np.log(len(f))).mean())


def measured(f: np.ndarray, sigma: np.ndarray, case: Case) -> dict[str, float]:
    """All scores of draws f (chains, draws, held-out rows) and sigma (chains, draws)."""
    step = max(1, f.shape[1] // MOST)
    f, sigma = np.asarray(f[:, ::step], float), np.asarray(sigma[:, ::step], float)
    alone = [of_draws(of_chain, case) for of_chain in f]
    pooled = of_draws(f.reshape(-1, f.shape[2]), case)
    one = {f"{key}_one": float(np.mean([a[key] for a in alone])) for key in pooled}
    rows = f[:, :, metrics.spaced_rows(f.shape[2])]
    ess, rhat = metrics.of_each(metrics.ess, rows), metrics.of_each(metrics.rhat, rows)
    errors = np.sqrt(np.mean((f - case.y_test) ** 2, axis=2))  # of each draw: Ronen et al. (2022)
    return (
        pooled
        | one
        | {"log_score": log_score(f.reshape(-1, f.shape[2]), sigma, case.y_test)}
        | {"ess": float(np.median(ess)), "ess_least": float(ess.min())}
        | {"rhat": float(np.median(rhat)), "rhat_worst": float(rhat.max())}
        | {"rhat_error": float(metrics.rhat(errors))}
    )
