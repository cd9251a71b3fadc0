"""Distributions of a new observation given its parameters in each draw: moments, draws, quantiles.

Parameters are arrays (D or 1, ...) that broadcast, in the order of PyTensor's random variables. The
posterior predictive distribution is a mixture of D laws with equal weights.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pymc_trees.predictors.special import normal_cdf

STEPS = 200
"""Of a search for a quantile, at the most; some ten are enough."""


class Law(NamedTuple):
    """A family of distributions."""

    mean: Callable
    """Of the parameters."""
    variance: Callable
    draw: Callable
    """Of a generator, the shape and the parameters."""
    location_scale: Callable | None = None
    """Mean and sd of a Normal of which observations are an increasing function."""
    outward: Callable = np.asarray
    """That function."""


def _categories(rng, shape, p):
    below = np.cumsum(p, axis=-1)
    u = rng.random(shape)[..., None] * below[..., -1:]
    return np.minimum((u >= below).sum(axis=-1), p.shape[-1] - 1)


def _student_variance(nu, mu, sigma):
    heavy = nu <= 2.0
    return sigma**2 * np.where(heavy, np.inf, nu / np.where(heavy, 1.0, nu - 2.0)) + 0.0 * mu


def _same(shape_of, value):
    return np.broadcast_to(value, np.broadcast_shapes(*(one.shape for one in shape_of)))


LAWS: dict[str, Law] = {
    "normal": Law(
        lambda mu, sigma: _same((mu, sigma), mu),
        lambda mu, sigma: _same((mu, sigma), sigma**2),
        lambda rng, shape, mu, sigma: rng.normal(mu, sigma, shape),
        lambda mu, sigma: (mu, sigma),
    ),
    "lognormal": Law(
        lambda mu, sigma: np.exp(mu + sigma**2 / 2),
        lambda mu, sigma: np.expm1(sigma**2) * np.exp(2 * mu + sigma**2),
        lambda rng, shape, mu, sigma: rng.lognormal(mu, sigma, shape),
        lambda mu, sigma: (mu, sigma),
        np.exp,
    ),
    "studentt": Law(
        lambda nu, mu, sigma: _same((nu, mu, sigma), mu),
        _student_variance,
        lambda rng, shape, nu, mu, sigma: mu + sigma * rng.standard_t(nu, shape),
    ),
    "bernoulli": Law(
        lambda p: p,
        lambda p: p * (1 - p),
        lambda rng, shape, p: (rng.random(shape) < p).astype(np.int64),
    ),
    "poisson": Law(
        lambda mu: mu,
        lambda mu: mu,
        lambda rng, shape, mu: rng.poisson(mu, shape),
    ),
    "negative_binomial": Law(
        lambda n, p: n * (1 - p) / p,
        lambda n, p: n * (1 - p) / p**2,
        lambda rng, shape, n, p: rng.negative_binomial(n, p, shape),
    ),
    "gamma": Law(
        lambda alpha, scale: alpha * scale,
        lambda alpha, scale: alpha * scale**2,
        lambda rng, shape, alpha, scale: rng.gamma(alpha, scale, shape),
    ),
    "exponential": Law(
        lambda scale: scale,
        lambda scale: scale**2,
        lambda rng, shape, scale: rng.exponential(scale, shape),
    ),
    "categorical": Law(
        lambda p: (p * np.arange(p.shape[-1])).sum(axis=-1),
        lambda p: (
            (p * np.arange(p.shape[-1]) ** 2).sum(axis=-1)
            - (p * np.arange(p.shape[-1])).sum(axis=-1) ** 2
        ),
        _categories,
    ),
}
OF_CLASSES = ("bernoulli", "categorical")
"""Laws with probabilities of classes."""


def shape_of(law: str, parameters: Sequence[np.ndarray]) -> tuple[int, ...]:
    """Shape of the observations in all draws."""
    shapes = [one.shape[:-1] if law == "categorical" else one.shape for one in parameters]
    return np.broadcast_shapes(*shapes)


def quantiles(law: Law, parameters: Sequence[np.ndarray], q: Sequence[float]) -> np.ndarray:
    """(Q, ...) quantiles of the mixture over draws, of a law with ``location_scale``."""
    assert law.location_scale is not None
    loc, scale = np.broadcast_arrays(*law.location_scale(*parameters))
    return law.outward(np.stack([_quantile(loc, scale, one) for one in q]))


def _quantile(loc: np.ndarray, scale: np.ndarray, q: float) -> np.ndarray:
    """Newton's method within a bracket, which is halved where a step leaves it."""
    low, high = (loc - 40.0 * scale).min(axis=0), (loc + 40.0 * scale).max(axis=0)
    x = loc.mean(axis=0)
    for _ in range(STEPS):
        z = (x - loc) / scale
        off = normal_cdf(z).mean(axis=0) - q
        low, high = np.where(off < 0, x, low), np.where(off > 0, x, high)
        density = (np.exp(-0.5 * z * z) / scale).mean(axis=0) / np.sqrt(2 * np.pi)
        step = x - off / np.maximum(density, np.finfo(float).tiny)
        new = np.where((step > low) & (step < high), step, 0.5 * (low + high))
        new = np.where(off == 0.0, x, new)
        done = np.abs(new - x) <= 1e-14 * (np.abs(x) + scale.max(axis=0))
        x = new
        if done.all():
            break
    return x
