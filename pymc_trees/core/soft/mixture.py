"""The proposal of the importance sampler: one Gaussian around each draw of the chains."""

import math
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.soft.covariance import chain_covariance


class Mixture(NamedTuple):
    """Gaussians with one covariance per chain; B blocks of centres, by chain and time."""

    centres: list[np.ndarray]
    """B arrays (centres of the block, d)."""
    chain: np.ndarray
    """(B,) chain of each block."""
    part: np.ndarray
    """(B,) part of the run, in time, of each block."""
    factors: list[np.ndarray]
    """Cholesky factor (d, d) of each chain's covariance."""


def make_mixture(draws: np.ndarray, parts: int, max_centres: int) -> Mixture:
    """Mixture around the draws of all chains.

    Parameters
    ----------
    draws : (chains, n, d) array
        All post-warm-up draws.
    parts : int
        Blocks that each chain is cut into.
    max_centres : int
        Maximal number of centres over all chains, evenly spaced if there are more draws.
        Covariances always use all draws.
    """
    chains, n, _ = draws.shape
    kept = min(n, max(max_centres // chains, 1))
    at = np.unique(np.linspace(0, n - 1, kept).round().astype(int))
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
    # Not by BLAS, whose threads would compete with chains in other processes.
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
