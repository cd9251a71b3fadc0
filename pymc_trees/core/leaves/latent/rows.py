"""Rows of a forest with latent variables, which are redrawn between two sweeps.

A sweep is compiled without them: it calls the kernels of a path by their addresses.
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

# ------------ Interface of a path, the latent variable of one row; dispatched on a NamedTuple type


class LatentKernels(NamedTuple):
    """Kernels of a path; ``numbers`` are what the likelihood of the row takes beside ``eta``."""

    draw_row: Callable
    """``(path, rng, numbers, eta)``: draw the latent variable from p(. | y, eta); then the row is
    an observation ``at`` of eta with a ``precision``: both."""
    log_row: Callable
    """``(path, numbers, eta)``: log p(y | eta), the latent variable integrated out."""


@generic("path")
def draw_row(path, rng, numbers, eta):
    """Draw the latent variable of a row: an observation of eta and its precision."""


@generic("path")
def log_row(path, numbers, eta):
    """Log-likelihood of a row."""


register_path = registrar(LatentKernels)
"""Register the kernels of a path."""


# --------------------------------------------------------------------------------------------------


@by_pointer
class LatentRows(NamedTuple):
    """Parameters of each row's likelihood other than f: eta = slope f + offset, and its numbers."""

    renew: int
    """Address of `_renew` for the path; 0 where there are no latent variables."""
    log_rows: int
    """Address of `_log_rows`."""
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
    return LatentRows(0, 0, np.empty((0, 0)), none, none, none)


def latent_rows(path: type, numbers, slope, offset, target) -> LatentRows:
    """Rows with the latent variables of a path (`contract`); C-contiguous float64 arrays."""
    renew, log_rows = _kernels_of(path)
    generator, rows, each = typeof(np.random.default_rng(0)), typeof(no_latents()), typeof(slope)
    return LatentRows(
        address_of(renew, (generator, rows, each, each)),
        address_of(log_rows, (rows, each)),
        numbers,
        slope,
        offset,
        target,
    )


@functools.cache
def _kernels_of(kind):
    """`_renew` and `_log_rows` of a path; by its type, since empty tuples are all equal."""
    path = kind()

    @njit(cache=True)
    def _renew(rng, rows, r, w):
        slope, offset, target = rows.slope, rows.offset, rows.target
        for i in range(r.size):
            f, a = target[i] - r[i], slope[i]
            at, precision = draw_row(path, rng, rows.numbers[i], a * f + offset[i])
            # a f + b is observed as `at`, so f as (at - b) / a; where a = 0 it says nothing
            target[i] = (at - offset[i]) / a if a != 0.0 else 0.0
            r[i] = target[i] - f
            if w.size > 1:
                w[i] = precision * a * a

    @njit(cache=True)
    def _log_rows(rows, r):
        total = 0.0
        for i in range(r.size):
            eta = rows.slope[i] * (rows.target[i] - r[i]) + rows.offset[i]
            total += log_row(path, rows.numbers[i], eta)
        return total

    return _renew, _log_rows


@njit(cache=True)
def renew(leaf, rng):
    """Draw the latent variables of all rows given f: the target, its residual, and precisions.

    Parameters
    ----------
    leaf : NormalData
        Its residual ``r`` is that of all trees. Precisions are written if ``w`` has one for each
        row.
    """
    if leaf.latent.renew != 0:
        call_at(leaf.latent.renew, (rng, leaf.latent, leaf.r, leaf.w), None)


@njit(cache=True)
def log_rows(leaf):
    """Log-likelihood of all rows given f, the latent variables integrated out."""
    return call_at(leaf.latent.log_rows, (leaf.latent, leaf.r), 0.0)
