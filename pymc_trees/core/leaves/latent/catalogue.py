"""All paths; a forest has one or none, and the compiled code of a sweep works for any of them."""

from numba.extending import overload

from pymc_trees.core.compile.linked import LINKED
from pymc_trees.core.leaves.latent import contract
from pymc_trees.core.leaves.latent.interval import Interval
from pymc_trees.core.leaves.latent.normal_mixture import NormalMixture
from pymc_trees.core.leaves.latent.polya_gamma import PolyaGamma
from pymc_trees.core.leaves.latent.scale_mixture import ScaleMixture
from pymc_trees.core.leaves.latent.skewed_laplace import SkewedLaplace

PATHS = (PolyaGamma(), Interval(), ScaleMixture(), SkewedLaplace(), NormalMixture())
"""In arbitrary order."""
NONE = -1
"""Number for rows without latent variables."""


def number_of(path: type) -> int:
    """Index of a path."""
    return [type(one) for one in PATHS].index(path)


def draw_numbered(paths, number, rng, numbers, eta):
    """`contract.draw_row` of the path of that number."""
    return contract.draw_row(paths[number], rng, numbers, eta)


def log_numbered(paths, number, numbers, eta):
    """`contract.log_row` of the path of that number."""
    return contract.log_row(paths[number], numbers, eta)


@overload(draw_numbered, jit_options=LINKED)
def _draw_numbered(paths, number, rng, numbers, eta):
    if len(paths) == 0:
        return lambda paths, number, rng, numbers, eta: (0.0, 0.0)

    def head_and_tail(paths, number, rng, numbers, eta):
        if number == 0:
            return contract.draw_row(paths[0], rng, numbers, eta)
        return draw_numbered(paths[1:], number - 1, rng, numbers, eta)

    return head_and_tail


@overload(log_numbered, jit_options=LINKED)
def _log_numbered(paths, number, numbers, eta):
    if len(paths) == 0:
        return lambda paths, number, numbers, eta: 0.0

    def head_and_tail(paths, number, numbers, eta):
        if number == 0:
            return contract.log_row(paths[0], numbers, eta)
        return log_numbered(paths[1:], number - 1, numbers, eta)

    return head_and_tail
