"""Evidence of one topology by layered adaptive importance sampling, in logs (section 3.3, B.1).

Pseudo-draws come from Gaussians around the draws of all chains, and a tenth of them from the prior.
Their weights have the *whole* mixture in the denominator, over all draws of all chains and the
prior (the spatial version of eq. 12, taken over chains too):

    w = likelihood prior / q,    q = (1 - e) mean of the Gaussians + e prior,    Z = mean of w

- A denominator per chain, averaged over chains, would estimate the *mean* of the masses of the
  modes of the chains, not their sum.
- With e q >= e prior, no weight exceeds the largest likelihood over e: tails of the posterior that
  are heavier than a Gaussian's cost precision, not correctness.
- The running mean of eq. 65 needs batches with the same Gaussians. These change as draws are added,
  so every estimate is recomputed from all draws.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pymc_trees.core.soft.mixture import draw_points, log_block_densities, make_mixture

DEFENSIVE = 0.1
"""Share e of pseudo-draws from the prior."""
MAX_CENTRES = 2000
"""Maximal number of Gaussians over all chains; beyond it, evenly spaced draws are used."""
PARTS = 4
"""Parts of the run for the second jackknife of the error."""


class Evidence(NamedTuple):
    """Estimate of one topology; P pseudo-draws."""

    log_evidence: float
    """Log of Z, without p(m)."""
    error: float
    """Its standard error: the larger of the jackknives over chains and over parts of the visits."""
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
        Generator and a number to as many draws of the prior.
    importance_draws : int
        N_M, pseudo-draws from each Gaussian.
    max_centres : int
        Gaussians at most.
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
        """Log weights with only some blocks in the mixture."""
        of = np.log(sizes[blocks] / sizes[blocks].sum() * len(blocks))
        mixed = log_mean(gaussians[:, blocks] + of, axis=1)
        with np.errstate(invalid="ignore"):
            weights = joint - np.logaddexp(np.log1p(-share) + mixed, np.log(share) + prior)
        # outside the support a draw of the prior may have no coordinates, and so no density
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
        if not np.isfinite(left_out).all():  # one group alone has all the mass
            error = np.inf
            continue
        spread = (len(groups) - 1) * np.var(left_out)
        error = max(error, float(np.sqrt(spread)))
    if error == 0.0:  # one draw of one chain: only the spread of the weights is known
        scaled = np.exp(weights - log_mean(weights))
        error = float(np.std(scaled) / np.sqrt(len(scaled)))
    return Evidence(log_mean(weights), error, points, weights)
