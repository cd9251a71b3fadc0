"""Interface of a path, the latent variable of one row; dispatched on a NamedTuple type."""

from collections.abc import Callable
from typing import NamedTuple

from pymc_trees.core.compile.dispatch import generic, registrar


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
