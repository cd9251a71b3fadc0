"""``y ~ StudentT(nu, eta, sd)``: a Normal with a gamma-distributed precision.

With lambda ~ Gamma(nu / 2, rate nu / 2), y ~ N(eta, sd^2 / lambda), and (West 1987)

    lambda | y, eta ~ Gamma((nu + 1) / 2, rate (nu + z^2) / 2),      z = (y - eta) / sd.
"""

import math
from typing import NamedTuple

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.latent.contract import register_path


class ScaleMixture(NamedTuple):
    """Numbers of a row: y, nu, sd."""


@njit(cache=True)
def _draw_row(path, rng, numbers, eta):
    y, nu, sd = numbers[0], numbers[1], numbers[2]
    z = (y - eta) / sd
    scale = rng.standard_gamma(0.5 * (nu + 1.0)) / (0.5 * (nu + z * z))
    return y, scale / (sd * sd)


@njit(cache=True)
def _log_row(path, numbers, eta):
    nu, sd = numbers[1], numbers[2]
    z = (numbers[0] - eta) / sd
    constant = math.lgamma(0.5 * (nu + 1.0)) - math.lgamma(0.5 * nu)
    constant -= 0.5 * math.log(nu * math.pi) + math.log(sd)
    return constant - 0.5 * (nu + 1.0) * math.log1p(z * z / nu)


register_path(ScaleMixture, draw_row=_draw_row, log_row=_log_row)
