"""Directions in which draws of f move most, and in which chains disagree most.

Draws are (chains, draws, rows); a direction is a unit vector over rows.
"""

import numpy as np

MOST = 2_000
"""Draws, over all chains, from which principal components are computed."""


def stacked(f):
    """Evenly spaced draws of all chains, centred: (at most MOST, rows)."""
    n_chains, n_draws, n_rows = f.shape
    every = max(1, -(-n_chains * n_draws // MOST))
    draws = np.asarray(f[:, ::every], float).reshape(-1, n_rows)
    return draws - draws.mean(axis=0)


def leading(vectors, count):
    """Eigenvectors of ``vectors' vectors`` with the largest eigenvalues, one a row."""
    _, _, axes = np.linalg.svd(vectors, full_matrices=False)
    return axes[:count]


def principal(f, count):
    """Leading principal components of f, between and within chains together."""
    return leading(stacked(f), count)


def shared(fits, count):
    """The same of several samplers of one posterior, which count alike.

    Each is centred at its own mean and scaled to a total variance of 1.
    """
    draws = [stacked(f) for f in fits]
    return leading(np.concatenate([d / np.linalg.norm(d) for d in draws]), count)


def between(f, count):
    """Leading directions of the means of half chains: where chains, or halves, disagree.

    They are chosen for that, so that R-hat along them is high and ESS low even where chains agree:
    compare them between samplers, not with 1.
    """
    half = f.shape[1] // 2
    halves = [f[:, :half].mean(axis=1, dtype=float), f[:, half:].mean(axis=1, dtype=float)]
    means = np.concatenate(halves)
    count = min(count, len(means) - 1)
    return leading(means - means.mean(axis=0), count)


def along(f, axes):
    """Draws along directions: (chains, draws, directions)."""
    f = np.asarray(f, float)
    return (f - f.mean(axis=(0, 1))) @ axes.T


def variance(draws):
    """Variance over all chains and draws, summed over the last axis."""
    return float(np.var(draws, axis=(0, 1)).sum())
