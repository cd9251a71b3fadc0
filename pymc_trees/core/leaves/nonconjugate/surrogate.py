"""What a leaf model beyond conjugacy answers so that whole trees can be redrawn under it.

A surrogate has Gaussian rows near the likelihood given the other trees (`gaussian.near`). Particles
grow under it, and their leaf values and weights are then put right
(`samplers.particle_gibbs.surrogate`). Both models keep the log weight of the present value of a
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
    """Draw and weigh the leaf values of a particle."""


class SurrogateKernels(NamedTuple):
    """What a model answers beside `core.leaves.contract.LeafKernels`."""

    fill_surrogate: Callable
    """``(leaf, near)``: write the rows of the surrogate: a function of the data and the other trees
    alone."""
    finish_tree: Callable
    """``(leaf, rng, particles, c)``: draw values for the leaves of a finished particle and write
    their statistics; the sum of the log weights."""


register_surrogate = registrar(SurrogateKernels)
"""Give these kernels of a leaf model."""
