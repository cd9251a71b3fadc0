"""Rows of a forest with latent variables, which are redrawn between two sweeps."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.leaves.latent.catalogue import NONE, PATHS, draw_numbered, log_numbered


@by_pointer
class LatentRows(NamedTuple):
    """Parameters of each row's likelihood other than f: eta = slope f + offset, and its numbers."""

    paths: tuple
    """`catalogue.PATHS`."""
    number: int
    """That of the path; `catalogue.NONE` for none."""
    numbers: np.ndarray
    """(n, q) for q of the path."""
    slope: np.ndarray
    """(n,)"""
    offset: np.ndarray
    """(n,)"""
    target: np.ndarray
    """(n,) target of f given the latent variables; overwritten."""


@njit(cache=True)
def no_latents():
    """For rows without latent variables."""
    none = np.empty(0)
    return LatentRows(PATHS, NONE, np.empty((0, 0)), none, none, none)


@njit(cache=True)
def renew(leaf, rng):
    """Draw the latent variables of all rows given f: the target, its residual, and precisions.

    Parameters
    ----------
    leaf : NormalData
        Its residual ``r`` is that of all trees. Precisions are written if ``w`` has one for each
        row.
    """
    latent, r, w = leaf.latent, leaf.r, leaf.w
    if latent.number < 0:
        return
    slope, offset, target = latent.slope, latent.offset, latent.target
    for i in range(r.size):
        f, a = target[i] - r[i], slope[i]
        at, precision = draw_numbered(
            latent.paths, latent.number, rng, latent.numbers[i], a * f + offset[i]
        )
        # a f + b is observed as `at`, so f as (at - b) / a; a row with a = 0 carries no information
        target[i] = (at - offset[i]) / a if a != 0.0 else 0.0
        r[i] = target[i] - f
        if w.size > 1:
            w[i] = precision * a * a


@njit(cache=True)
def log_rows(leaf):
    """Log-likelihood of all rows given f, the latent variables integrated out."""
    latent, r = leaf.latent, leaf.r
    total = 0.0
    for i in range(r.size):
        eta = latent.slope[i] * (latent.target[i] - r[i]) + latent.offset[i]
        total += log_numbered(latent.paths, latent.number, latent.numbers[i], eta)
    return total
