"""Rows of a mixture: in its weights, or in one of its components; which one is latent.

Given which component a row belongs to, it is a row of that component, or says nothing of eta.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.latent.augmentations import (
    Interval,
    PolyaGamma,
    ScaleMixture,
    SkewedLaplace,
    draw_polya_gamma,
    draw_truncated,
    log_tail,
)
from pymc_trees.core.leaves.latent.rows import draw_row, log_row, register_augmentation


@njit(cache=True)
def log_sum(a, b):
    """log(exp(a) + exp(b)), of which either may be -inf."""
    larger, smaller = max(a, b), min(a, b)
    if smaller == -np.inf:
        return larger
    return larger + math.log1p(math.exp(smaller - larger))


@njit(cache=True)
def _is_first(rng, first, second):
    """A draw that is true with odds exp(first - second), one of which may be -inf."""
    if first == -np.inf:
        return False
    return second == -np.inf or math.log(rng.random()) < first - log_sum(first, second)


# ----------------------- log(p exp(l_1) + (1 - p) exp(l_0)), p = 1 / (1 + exp(-eta)) or Phi(eta)
#
# The component of a row is a Bernoulli of p, and given it a row of a logit or probit regression.


class LogitShare(NamedTuple):
    """Numbers of a row: l_1, l_0; p = 1 / (1 + exp(-eta))."""


@njit(cache=True)
def _log_shares(eta):
    """Logarithms of p and 1 - p."""
    softplus = max(eta, 0.0) + math.log1p(math.exp(-abs(eta)))
    return eta - softplus, -softplus


@njit(cache=True)
def _draw_logit_share_row(augmentation, rng, numbers, eta):
    log_p, log_q = _log_shares(eta)
    half = 0.5 if _is_first(rng, numbers[0] + log_p, numbers[1] + log_q) else -0.5
    omega = draw_polya_gamma(rng, eta)
    return half / omega, omega


@njit(cache=True)
def _log_logit_share_row(augmentation, numbers, eta):
    log_p, log_q = _log_shares(eta)
    return log_sum(numbers[0] + log_p, numbers[1] + log_q)


register_augmentation(LogitShare, draw_row=_draw_logit_share_row, log_row=_log_logit_share_row)


class ProbitShare(NamedTuple):
    """Numbers of a row: l_1, l_0, 1; p = Phi(eta). The last is the sd of the latent Normal."""


@njit(cache=True)
def _log_phi(x):
    """Logarithm of Phi(x)."""
    return log_tail(-x) if x < 0.0 else math.log1p(-0.5 * math.erfc(x / math.sqrt(2.0)))


@njit(cache=True)
def _draw_probit_share_row(augmentation, rng, numbers, eta):
    if _is_first(rng, numbers[0] + _log_phi(eta), numbers[1] + _log_phi(-eta)):
        return eta + draw_truncated(rng, -eta, np.inf), 1.0
    return eta + draw_truncated(rng, -np.inf, -eta), 1.0


@njit(cache=True)
def _log_probit_share_row(augmentation, numbers, eta):
    return log_sum(numbers[0] + _log_phi(eta), numbers[1] + _log_phi(-eta))


register_augmentation(ProbitShare, draw_row=_draw_probit_share_row, log_row=_log_probit_share_row)


# ---------------------- log(exp(a) + exp(b + l)), l the log-likelihood of a row of an augmentation
#
# Numbers of a row: those of the augmentation, a, b. A row of another component has precision 0.


class IntervalPart(NamedTuple):
    """`Interval` in a mixture."""


class PolyaGammaPart(NamedTuple):
    """`PolyaGamma` in a mixture."""


class ScaleMixturePart(NamedTuple):
    """`ScaleMixture` in a mixture."""


class SkewedLaplacePart(NamedTuple):
    """`SkewedLaplace` in a mixture."""


PARTS: dict[type, type] = {}
"""Augmentations in a mixture, by the augmentation."""


def _register_part(kind: type, base: type) -> None:
    path = base()

    @njit(cache=True)
    def draw_part_row(augmentation, rng, numbers, eta):
        a, b = numbers[-2], numbers[-1]
        if b == -np.inf:
            return 0.0, 0.0
        if a > -np.inf and _is_first(rng, a, b + log_row(path, numbers, eta)):
            return 0.0, 0.0
        return draw_row(path, rng, numbers, eta)

    @njit(cache=True)
    def log_part_row(augmentation, numbers, eta):
        a, b = numbers[-2], numbers[-1]
        return a if b == -np.inf else log_sum(a, b + log_row(path, numbers, eta))

    register_augmentation(kind, draw_row=draw_part_row, log_row=log_part_row)
    PARTS[base] = kind


_register_part(IntervalPart, Interval)
_register_part(PolyaGammaPart, PolyaGamma)
_register_part(ScaleMixturePart, ScaleMixture)
_register_part(SkewedLaplacePart, SkewedLaplace)
