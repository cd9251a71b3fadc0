"""Rows of a forest with latent variables, which are redrawn between two sweeps.

Sweeps call the kernels of an augmentation by address, so they are compiled once for all of them.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import typeof

from pymc_trees.core.compile.address import address_of, call_at
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, registrar
from pymc_trees.core.compile.pointer import by_pointer

# ----------------------------- Interface of an augmentation, dispatched on the type of a NamedTuple


class LatentKernels(NamedTuple):
    """Kernels of an augmentation; ``numbers`` are y and the parameters of the row except eta."""

    draw_row: Callable
    """``(augmentation, rng, numbers, eta)``: draw the latent variable from p(. | y, eta); return
    the observation of eta that the row becomes, and its precision."""
    log_row: Callable
    """``(augmentation, numbers, eta)``: log p(y | eta), the latent variable integrated out."""


@generic("augmentation")
def draw_row(augmentation, rng, numbers, eta):
    """Draw the latent variable of a row: an observation of eta and its precision."""


@generic("augmentation")
def log_row(augmentation, numbers, eta):
    """Log-likelihood of a row."""


register_augmentation = registrar(LatentKernels)
"""Register the kernels of an augmentation."""


# --------------------------------------------------------------------------------------------------


@by_pointer
class LatentRows(NamedTuple):
    """Likelihood of each row: eta = slope f + offset, and its numbers."""

    redraw: int
    """Address of `_redraw` of the augmentation; 0 without latent variables."""
    log_rows: int
    """Address of `_log_rows`."""
    numbers: np.ndarray
    """(n, q), as the augmentation takes them."""
    slope: np.ndarray
    """(n,)"""
    offset: np.ndarray
    """(n,)"""
    target: np.ndarray
    """(n,) target of f given the latent variables; overwritten."""


@njit(cache=True)
def no_latents():
    """`LatentRows` without latent variables."""
    none = np.empty(0)
    return LatentRows(0, 0, np.empty((0, 0)), none, none, none)


def latent_rows(augmentation: type, numbers, slope, offset, target) -> LatentRows:
    """Rows with the latent variables of an augmentation; C-contiguous float64 arrays."""
    redraw, log_rows = _kernels_of(augmentation)
    generator, rows, each = typeof(np.random.default_rng(0)), typeof(no_latents()), typeof(slope)
    return LatentRows(
        address_of(redraw, (generator, rows, each, each)),
        address_of(log_rows, (rows, each)),
        numbers,
        slope,
        offset,
        target,
    )


@functools.cache
def _kernels_of(kind):
    """`_redraw` and `_log_rows` of an augmentation, by its type: empty tuples are all equal."""
    augmentation = kind()

    @njit(cache=True)
    def _redraw(rng, rows, r, w):
        slope, offset, target = rows.slope, rows.offset, rows.target
        for i in range(r.size):
            f, a = target[i] - r[i], slope[i]
            observation, precision = draw_row(augmentation, rng, rows.numbers[i], a * f + offset[i])
            # a f + b is observed, so f is observed as (observation - b) / a; where a = 0, f is not
            target[i] = (observation - offset[i]) / a if a != 0.0 else 0.0
            r[i] = target[i] - f
            if w.size == r.size:
                w[i] = precision * a * a

    @njit(cache=True)
    def _log_rows(rows, r):
        total = 0.0
        for i in range(r.size):
            eta = rows.slope[i] * (rows.target[i] - r[i]) + rows.offset[i]
            total += log_row(augmentation, rows.numbers[i], eta)
        return total

    return _redraw, _log_rows


@njit(cache=True)
def redraw_latents(leaf, rng):
    """Draw the latent variables of all rows given f: the target, its residual, and precisions.

    Parameters
    ----------
    leaf : NormalData
        Its residual ``r`` is that of all trees. Precisions are written if ``w`` has one for each
        row.
    """
    if leaf.latent.redraw != 0:
        call_at(leaf.latent.redraw, (rng, leaf.latent, leaf.r, leaf.w), None)


@njit(cache=True)
def log_rows(leaf):
    """Log-likelihood of all rows given f, the latent variables integrated out."""
    return call_at(leaf.latent.log_rows, (leaf.latent, leaf.r), 0.0)
