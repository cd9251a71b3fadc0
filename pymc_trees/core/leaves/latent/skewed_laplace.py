"""y with exponential tails on both sides of eta, of rate ``right`` above and ``left`` below.

Such a difference of two exponentials has the characteristic function

    1 / ((1 - i t / right) (1 + i t / left)) = 1 / (1 - i t theta + t^2 phi2 / 2),
    theta = 1 / right - 1 / left,      phi2 = 2 / (right left),

which is that of theta v + sqrt(phi2 v) N(0, 1) with v ~ Exp(1) (Kozumi and Kobayashi 2011, eq. 2,
whose tau^2 sigma^2 is phi2). Given y, with e = y - eta, v has the density proportional to

    v^(-1/2) exp(-(e^2 / phi2) / (2 v) - (theta^2 / phi2 + 2) v / 2),

so that 1 / v is inverse Gaussian of mean sqrt(a phi2) / |e| and shape a = theta^2 / phi2 + 2; and
given v, the row is an observation y - theta v of eta with precision 1 / (phi2 v).
"""

import math
from typing import NamedTuple

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.latent.contract import register_path
from pymc_trees.core.leaves.latent.polya_gamma import draw_inverse_gaussian

LEAST = 1e-100
"""Minimum of |e|: keeps the mean of 1 / v finite."""


class SkewedLaplace(NamedTuple):
    """Numbers of a row: y, right, left."""


@njit(cache=True)
def _draw_row(path, rng, numbers, eta):
    y, right, left = numbers[0], numbers[1], numbers[2]
    theta, phi2 = 1.0 / right - 1.0 / left, 2.0 / (right * left)
    shape = theta * theta / phi2 + 2.0
    mean = math.sqrt(shape * phi2) / max(abs(y - eta), LEAST)
    inverse = draw_inverse_gaussian(rng, mean, shape)
    return y - theta / inverse, inverse / phi2


@njit(cache=True)
def _log_row(path, numbers, eta):
    e, right, left = numbers[0] - eta, numbers[1], numbers[2]
    fall = -right * e if e > 0.0 else left * e
    return math.log(right * left / (right + left)) + fall


register_path(SkewedLaplace, draw_row=_draw_row, log_row=_log_row)
