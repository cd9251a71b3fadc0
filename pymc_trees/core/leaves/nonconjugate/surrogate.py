"""What a leaf model beyond conjugacy answers so that whole trees can be redrawn under it.

A surrogate is a `NormalData`: Gaussian rows of their own precision, near the likelihood given the
other trees. Particles grow under the surrogate, and their leaf values and weights are then put
right (`samplers.surrogate_sweep`). Both models keep the log weight of the present value of a leaf,

    log p(rows | mu) + log p(mu) - log q(mu | rows),

in the first of its statistics and the value in the next K; where the leaves of a tree are drawn
together, its first leaf holds the weight of all and the others hold 0.

========================================== ========================================================
``fill_surrogate(leaf, output, r, w)``      write the rows of the surrogate for one of the K
                                           outputs: a function of the data and the other trees alone
``finish_tree(leaf, rng, particles, c)``   draw values for the leaves of a finished particle and
                                           write their statistics; the sum of the log weights
========================================== ========================================================
"""

from numba.extending import overload

from pymc_trees.core.leaves.contract import kernel_of, typed_kernel
from pymc_trees.core.leaves.nonconjugate import joint_surrogate, rowwise_surrogate  # noqa: F401


def fill_surrogate(leaf, output, r, w):
    """Write the rows of the surrogate."""
    return kernel_of(type(leaf), "fill_surrogate")(leaf, output, r, w)


def finish_tree(leaf, rng, particles, c):
    """Draw and weigh the leaf values of a particle."""
    return kernel_of(type(leaf), "finish_tree")(leaf, rng, particles, c)


@overload(fill_surrogate)
def _fill_surrogate(leaf, output, r, w):
    return typed_kernel(leaf, "fill_surrogate")


@overload(finish_tree)
def _finish_tree(leaf, rng, particles, c):
    return typed_kernel(leaf, "finish_tree")
