"""Evidence of one topology by layered adaptive importance sampling, in logs (section 3.3, B.2).

The proposal is a mixture of one Gaussian around each draw of the chains, whose covariances the
chains of one mode share.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit

# --------------------------------------------- Covariance of the importance proposals of one chain


UNMOVED = 1e-8
"""Variance assumed for a coordinate that did not move."""
ROUNDING = 1e-14
"""Largest standard deviation of such a coordinate, relative to its size: that of rounding."""


def chain_covariance(draws: np.ndarray) -> np.ndarray:
    """Covariance over all post-warm-up draws of a chain, regularised if these are few.

    Off-diagonal entries are shrunk by n / (n + d), which keeps the matrix positive definite even
    with fewer draws than coordinates; with many draws it is the empirical covariance. It is
    equivariant under a change of units.

    Parameters
    ----------
    draws : (n, d) array

    Returns
    -------
    (d, d) array
    """
    n, d = draws.shape
    covariance = np.atleast_2d(np.cov(draws, rowvar=False, bias=True)) if n > 1 else np.eye(d)
    variances = np.diag(covariance).copy()
    variances[variances <= (ROUNDING * np.abs(draws).max(axis=0)) ** 2] = UNMOVED
    covariance = covariance * (n / (n + d))
    covariance[np.diag_indices(d)] = variances
    return covariance


# ------------------------- The importance proposal: a mixture of Gaussians around the chains' draws


class Mixture(NamedTuple):
    """Gaussians with one covariance per chain; B blocks of centres, by chain and time."""

    centres: list[np.ndarray]
    """B arrays (centres of the block, d)."""
    chain: np.ndarray
    """(B,) chain of each block."""
    part: np.ndarray
    """(B,) period of the run of each block."""
    factors: list[np.ndarray]
    """Cholesky factor (d, d) of each chain's covariance."""


def make_mixture(draws: np.ndarray, parts: int, max_centres: int) -> Mixture:
    """Mixture around the draws of all chains.

    Parameters
    ----------
    draws : (chains, n, d) array
        All post-warm-up draws.
    parts : int
        Number of blocks per chain.
    max_centres : int
        Maximal number of centres over all chains; of more draws, evenly spaced ones are used.
        Covariances always use all draws.
    """
    chains, n, _ = draws.shape
    centres = min(n, max(max_centres // chains, 1))
    at = np.unique(np.linspace(0, n - 1, centres).round().astype(int))
    pieces = np.array_split(at, min(parts, len(at)))
    return Mixture(
        [draws[c, piece] for c in range(chains) for piece in pieces],
        np.repeat(np.arange(chains), len(pieces)),
        np.tile(np.arange(len(pieces)), chains),
        [np.linalg.cholesky(chain_covariance(chain)) for chain in draws],
    )


def draw_points(rng: np.random.Generator, mixture: Mixture, each: int):
    """``each`` points from every centre (eq. 13): (P, d) points, and the (P,) block of each."""
    points, blocks = [], []
    for b, centres in enumerate(mixture.centres):
        noise = rng.standard_normal((len(centres) * each, centres.shape[1]))
        points.append(
            np.repeat(centres, each, axis=0) + noise @ mixture.factors[mixture.chain[b]].T
        )
        blocks.append(np.full(len(noise), b))
    return np.concatenate(points), np.concatenate(blocks)


def log_block_densities(mixture: Mixture, points: np.ndarray) -> np.ndarray:
    """(P, B) log of the mean Gaussian density over the centres of each block (eq. 12, 64)."""
    out = np.empty((len(points), len(mixture.centres)))
    for c, factor in enumerate(mixture.factors):
        whiten = np.linalg.inv(factor)
        blocks = np.flatnonzero(mixture.chain == c)
        white = _product(points, whiten)
        for b in blocks:
            _log_densities(white, _product(mixture.centres[b], whiten), out[:, b])
        out[:, blocks] -= np.log(np.diag(factor)).sum()
    return out


@njit(cache=True)
def _product(points, matrix):
    # Not by BLAS, whose threads would compete with chains in other processes
    n, d = points.shape
    out = np.empty((n, d))
    for i in range(n):
        for j in range(d):
            total = 0.0
            for k in range(j + 1):  # the inverse of a lower triangle is one
                total += matrix[j, k] * points[i, k]
            out[i, j] = total
    return out


@njit(cache=True)
def _log_densities(points, centres, out):
    """Log of the mean over centres of standard normal densities."""
    n, d = points.shape
    exponents = np.empty(len(centres))
    for i in range(n):
        top = -np.inf
        for c in range(len(centres)):
            total = 0.0
            for k in range(d):
                gap = points[i, k] - centres[c, k]
                total += gap * gap
            exponents[c] = -0.5 * total
            top = max(top, exponents[c])
        total = 0.0
        for c in range(len(centres)):
            total += math.exp(exponents[c] - top)
        out[i] = top + math.log(total / len(centres)) - 0.5 * d * math.log(2.0 * math.pi)


# --------------------------------------------------------------------------------------------------
# Evidence of one topology by layered adaptive importance sampling, in logs (section 3.3, B.1).
#
# Pseudo-draws come from Gaussians around the draws of all chains, and a tenth of them from the
# prior. The denominator of their weights is the *whole* mixture, over all draws of all chains and
# the prior (the spatial version of eq. 12, also over chains):
#
#     w = likelihood prior / q,    q = (1 - e) mean of the Gaussians + e prior,    Z = mean of w
#
# - A denominator per chain, averaged over chains, would estimate the *mean* of the masses of the
#   modes of the chains, not their sum.
# - With e q >= e prior, no weight exceeds the largest likelihood over e: tails of the posterior
#   that are heavier than a Gaussian's cost precision, not correctness.
# - The running mean of eq. 65 needs batches with the same Gaussians. Here these change as draws
#   are added, so every estimate is recomputed from all draws.


DEFENSIVE = 0.1
"""Share e of pseudo-draws from the prior."""
MAX_CENTRES = 2000
"""Maximal number of Gaussians over all chains; of more draws, evenly spaced ones are used."""
PARTS = 4
"""Number of periods of the run for the second jackknife of the error."""


class Evidence(NamedTuple):
    """Evidence of one topology, from P pseudo-draws."""

    log_evidence: float
    """Log of Z, without p(m)."""
    error: float
    """Its standard error: the larger of the jackknives over chains and over periods."""
    points: np.ndarray
    """(P, d) pseudo-draws."""
    log_weights: np.ndarray
    """(P,) log importance weights, not normalised (eq. 62)."""

    @property
    def log_variance(self) -> float:
        """Log of the population variance of the weights."""
        finite = self.log_weights[np.isfinite(self.log_weights)]
        shift = max(self.log_evidence, finite.max(initial=self.log_evidence))
        deviation = np.exp(self.log_weights - shift) - np.exp(self.log_evidence - shift)
        with np.errstate(divide="ignore"):
            return float(np.log(np.mean(deviation**2)) + 2.0 * shift)

    @property
    def probabilities(self) -> np.ndarray:
        """(P,) normalised weights (eq. 14)."""
        weights = np.exp(self.log_weights - self.log_weights.max())
        return weights / weights.sum()

    @property
    def effective_draws(self) -> float:
        """Kish's effective number of pseudo-draws."""
        return float(1.0 / np.sum(self.probabilities**2))


def log_mean(values: np.ndarray, axis: int | None = None):
    """Log of the mean of ``exp(values)``."""
    top = np.max(values, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        out = np.log(np.mean(np.exp(values - top), axis=axis, keepdims=True)) + top
    return out.item() if axis is None else np.squeeze(out, axis=axis)


def estimate_evidence(
    rng: np.random.Generator,
    draws: np.ndarray,
    log_density: Callable[[np.ndarray], np.ndarray],
    draw_prior: Callable[[np.random.Generator, int], np.ndarray],
    importance_draws: int,
    max_centres: int = MAX_CENTRES,
) -> Evidence:
    """Evidence from the post-warm-up draws of all chains.

    Parameters
    ----------
    rng : numpy.random.Generator
    draws : (chains, n, d) array
        In unconstrained space.
    log_density : callable
        (P, d) points to (P, 2) log densities in that space: joint with the data, and prior.
    draw_prior : callable
        Maps a generator and a number to as many draws of the prior.
    importance_draws : int
        N_M, pseudo-draws from each Gaussian.
    max_centres : int
        Maximal number of Gaussians.
    """
    if draws.shape[2] == 0:  # no parameters: the density is the evidence
        points = np.empty((1, 0))
        [[joint, _]] = log_density(points)
        return Evidence(float(joint), 0.0, points, np.array([joint]))
    mixture = make_mixture(draws, PARTS, max_centres)
    points, block = draw_points(rng, mixture, importance_draws)
    n_prior = max(1, round(len(points) * DEFENSIVE / (1.0 - DEFENSIVE)))
    points = np.concatenate([points, draw_prior(rng, n_prior)])
    block = np.concatenate([block, np.full(n_prior, -1)])
    share = n_prior / len(points)
    joint, prior = log_density(points).T
    joint = np.where(np.isnan(joint), -np.inf, joint)
    gaussians = log_block_densities(mixture, points)
    sizes = np.array([len(c) for c in mixture.centres], dtype=float)

    def log_weights(blocks):
        """Log weights under a mixture of some blocks only."""
        of = np.log(sizes[blocks] / sizes[blocks].sum() * len(blocks))
        mixed = log_mean(gaussians[:, blocks] + of, axis=1)
        with np.errstate(invalid="ignore"):
            weights = joint - np.logaddexp(np.log1p(-share) + mixed, np.log(share) + prior)
        # A prior draw outside the support may have no finite coordinates, and so no density.
        return np.where(joint == -np.inf, -np.inf, weights)

    everything = np.arange(len(sizes))
    weights = log_weights(everything)
    error = 0.0
    for labels in (mixture.chain, mixture.part):
        groups = np.unique(labels)
        if len(groups) < 2:
            continue
        left_out = []
        for group in groups:
            blocks = everything[labels != group]
            used = np.isin(block, blocks)
            used[block < 0] = np.arange(n_prior) % len(groups) != group
            left_out.append(log_mean(log_weights(blocks)[used]))
        if not np.isfinite(left_out).all():  # a single group has all the mass
            error = np.inf
            continue
        spread = (len(groups) - 1) * np.var(left_out)
        error = max(error, float(np.sqrt(spread)))
    if error == 0.0:  # one draw of one chain: the spread of the weights has to do
        scaled = np.exp(weights - log_mean(weights))
        error = float(np.std(scaled) / np.sqrt(len(scaled)))
    return Evidence(log_mean(weights), error, points, weights)


# ------------------------------------- The covariance that chains of one topology in one mode share


APART = 4.0
"""Distance of means, in standard deviations, beyond which chains are in different modes."""


def pooled_covariances(draws: Sequence[np.ndarray], is_full: bool = True) -> list[np.ndarray]:
    """(d, d) covariance for each chain, from its own draws and those of chains in the same mode.

    A single chain has too few draws in a short warm-up. Chains in another mode, where correlations
    differ, are left out.

    Parameters
    ----------
    draws : sequence of (n, d) arrays
        Last draws of the warm-up of each chain.
    is_full : bool
        Otherwise covariances are diagonal.
    """
    if draws[0].shape[1] == 0:  # no parameters
        return [np.empty((0, 0))] * len(draws)
    means = np.array([chain.mean(axis=0) for chain in draws])
    variances = np.array([chain.var(axis=0) for chain in draws])
    distance = (means[:, None] - means) ** 2
    near = (distance <= APART**2 * (variances[:, None] + variances)).all(axis=2)
    together = [[own for own, is_near in zip(draws, row, strict=True) if is_near] for row in near]
    covariances = [chain_covariance(np.concatenate(own)) for own in together]
    return covariances if is_full else [np.diag(np.diag(c)) for c in covariances]
