"""Distributions of a new observation given its parameters in each draw: moments, draws, quantiles.

Parameters are arrays (D or 1, ...) that broadcast, in the order of PyTensor's random variables. The
posterior predictive distribution is a mixture of D laws with equal weights.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pymc_trees.arguments import check_share
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
    components: Callable | None = None
    """Weight, mean and sd of the normals of a mixture, these on the last axis."""
    survival: Callable | None = None
    """Probability above a number, of this and the parameters."""


def _categories(rng, shape, p):
    below = np.cumsum(p, axis=-1)
    u = rng.random(shape)[..., None] * below[..., -1:]
    return np.minimum((u >= below).sum(axis=-1), p.shape[-1] - 1)


def _gamma(x):
    """The gamma function; infinite where it is too large for float64."""

    def at(one):
        try:
            return math.gamma(one)
        except OverflowError:
            return math.inf

    return np.vectorize(at, otypes=[float])(x)


def _weibull_variance(alpha, beta):
    square, mean = _gamma(1.0 + 2.0 / alpha), _gamma(1.0 + 1.0 / alpha)
    return beta**2 * (square - np.where(np.isinf(square), 0.0, mean) ** 2)


def _mixture_variance(parts):
    weight, mean, variance = np.moveaxis(parts, -1, 0)
    whole = (weight * mean).sum(axis=-1)
    return (weight * (variance + (mean - whole[..., None]) ** 2)).sum(axis=-1)


def _of_mixture(rng, shape, parts):
    chosen = _categories(rng, shape, parts[..., 0])[..., None, None]
    own = np.take_along_axis(np.broadcast_to(parts, (*shape, *parts.shape[-2:])), chosen, axis=-2)
    return rng.normal(own[..., 0, 1], np.sqrt(own[..., 0, 2]))


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
        survival=lambda y, mu, sigma: normal_cdf((mu - y) / sigma),
    ),
    "lognormal": Law(
        lambda mu, sigma: np.exp(mu + sigma**2 / 2),
        lambda mu, sigma: np.expm1(sigma**2) * np.exp(2 * mu + sigma**2),
        lambda rng, shape, mu, sigma: rng.lognormal(mu, sigma, shape),
        lambda mu, sigma: (mu, sigma),
        np.exp,
        survival=lambda y, mu, sigma: normal_cdf((mu - np.log(np.maximum(y, 0.0))) / sigma),
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
        survival=lambda y, scale: np.exp(-np.maximum(y, 0.0) / scale),
    ),
    "weibull": Law(
        lambda alpha, beta: beta * _gamma(1.0 + 1.0 / alpha),
        _weibull_variance,
        lambda rng, shape, alpha, beta: beta * rng.weibull(alpha, shape),
        survival=lambda y, alpha, beta: np.exp(-((np.maximum(y, 0.0) / beta) ** alpha)),
    ),
    "normal_mixture": Law(
        lambda parts: (parts[..., 0] * parts[..., 1]).sum(axis=-1),
        _mixture_variance,
        _of_mixture,
        components=lambda parts: (
            parts[..., 0],
            parts[..., 1],
            np.sqrt(np.maximum(parts[..., 2], np.finfo(float).tiny)),
        ),
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
OWN_AXES = {"categorical": 1, "normal_mixture": 2}
"""Axes of a parameter behind those of the observations."""
OF_CLASSES = ("bernoulli", "categorical")
"""Laws with probabilities of classes."""


def shape_of(law: str, parameters: Sequence[np.ndarray]) -> tuple[int, ...]:
    """Shape of the observations in all draws."""
    own = OWN_AXES.get(law, 0)
    shapes = [one.shape[: one.ndim - own] for one in parameters]
    return np.broadcast_shapes(*shapes)


def quantiles(
    law: Law,
    parameters: Sequence[np.ndarray],
    q: Sequence[float],
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """(Q, ...) quantiles of the mixture over draws, of a law made of normals.

    ``weights`` (D, n) of a law without components add up to 1 over the draws, for each row; default
    equal ones.
    """
    if law.components is not None:
        parts = np.broadcast_arrays(*law.components(*parameters))
        weight, loc, scale = (
            np.moveaxis(one, -1, 1).reshape(-1, *one.shape[1:-1]) for one in parts
        )
        weight = weight / len(parts[0])
    else:
        assert law.location_scale is not None
        loc, scale = np.broadcast_arrays(*law.location_scale(*parameters))
        weight = np.full((len(loc), *[1] * (loc.ndim - 1)), 1.0 / len(loc))
        if weights is not None:
            weight = weights.reshape(weights.shape + (1,) * (loc.ndim - 2))
    with np.errstate(all="ignore"):  # components without weight have no scale
        return law.outward(np.stack([_quantile(weight, loc, scale, one) for one in q]))


def _quantile(weight, loc: np.ndarray, scale: np.ndarray, q: float) -> np.ndarray:
    """Newton's method within a bracket, which is halved where a step leaves it."""
    counts = np.broadcast_to(weight > 0.0, loc.shape)
    low = np.where(counts, loc - 40.0 * scale, np.inf).min(axis=0)
    high = np.where(counts, loc + 40.0 * scale, -np.inf).max(axis=0)
    x = (weight * loc).sum(axis=0)
    for _ in range(STEPS):
        z = (x - loc) / scale
        off = (weight * normal_cdf(z)).sum(axis=0) - q
        low, high = np.where(off < 0, x, low), np.where(off > 0, x, high)
        density = (weight * np.exp(-0.5 * z * z) / scale).sum(axis=0) / np.sqrt(2 * np.pi)
        step = x - off / np.maximum(density, np.finfo(float).tiny)
        new = np.where((step > low) & (step < high), step, 0.5 * (low + high))
        new = np.where(off == 0.0, x, new)
        widest = np.where(counts, scale, 0.0).max(axis=0)
        done = np.abs(new - x) <= 1e-14 * (np.abs(x) + widest)
        x = new
        if done.all():
            break
    return x


# --------------------------------------------------------------- Summaries of values over the draws


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
