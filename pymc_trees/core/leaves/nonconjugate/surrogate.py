"""Kernels of a nonconjugate leaf model for redrawing whole trees.

A surrogate has Gaussian rows near the likelihood given the other trees (`gaussian.near`). Particles
grow under it, and their leaf values and weights are then corrected
(`samplers.particle_gibbs.surrogate`). Both models store the log weight of the current value of a
leaf,

    log p(rows | mu) + log p(mu) - log q(mu | rows),

in the first of its statistics and the value in the next K; where the leaves of a tree are drawn
together, its first leaf holds the weight of all and the others hold 0.
"""

from collections.abc import Callable
from typing import NamedTuple

from pymc_trees.core.compile.dispatch import generic, registrar


@generic("leaf")
def fill_surrogate(leaf, near):
    """Write the rows of the surrogate."""


@generic("leaf")
def finish_tree(leaf, rng, particles, c):
    """Draw and weight the leaf values of a particle."""


class SurrogateKernels(NamedTuple):
    """Kernels in addition to `core.leaves.contract.LeafKernels`."""

    fill_surrogate: Callable
    """``(leaf, near)``: write the rows of the surrogate: a function of the data and the other trees
    alone."""
    finish_tree: Callable
    """``(leaf, rng, particles, c)``: draw values for the leaves of a finished particle and write
    their statistics; the sum of the log weights."""


register_surrogate = registrar(SurrogateKernels)
"""Register these kernels of a leaf model."""
