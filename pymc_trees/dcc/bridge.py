"""From one density to another by Hamiltonian Monte Carlo, and the weight of the path.

A bridge joins two unnormalised densities of the same vector by densities in between,

    log g_b(z) = base(z) + b gain(z),    0 = b_0 < b_1 < .. < b_T < b_{T+1} = 1,

each left invariant by a reversible transition. The vector makes one transition of each. The weight
of its path is the product of the ratios ``g_next / g_current``, each at the vector's position when
the density changes (Neal 2001). In a Metropolis-Hastings ratio these weights stand for the ratio of
the densities: the probability of a path up, times its weight, times g_0, equals that of the same
path down times g_1 (Karagiannis and Andrieu 2013, section 3). Transitions must be reversible and
the same in both directions; their efficiency affects acceptance only.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

MAX_LEAPS = 32
"""Maximal number of leapfrog steps of a transition."""
SLOW_START = 3.0
"""Exponent of the spacing: densities are closer at small b, where they differ most."""


class Point(NamedTuple):
    """The two terms at a vector, and their gradients."""

    base: float
    gain: float
    d_base: np.ndarray
    d_gain: np.ndarray

    def log_density(self, b: float) -> float:
        """Log g_b; minus infinity where it is not a number."""
        value = self.base + b * self.gain if b > 0.0 else self.base
        return value if np.isfinite(value) else -np.inf

    def gradient(self, b: float) -> np.ndarray:
        """Of log g_b."""
        return self.d_base + b * self.d_gain


class Scales(NamedTuple):
    """Tuning of a transition, which does not depend on the vector."""

    step: float
    """Step size of the leapfrog, in units of the standard deviations."""
    variances: np.ndarray
    """(d,) inverse of the diagonal mass."""

    @property
    def max_leaps(self) -> int:
        """Maximal number of leapfrog steps: half a period for a normal with these variances."""
        return int(np.clip(np.ceil(np.pi / self.step), 1, MAX_LEAPS))


class Crossing(NamedTuple):
    """Result of crossing a bridge."""

    z: np.ndarray
    log_weight: float
    """Minus infinity if a density is 0 or undefined."""
    gradients: int
    """Number of evaluations of both terms."""


def spaced(n: int) -> np.ndarray:
    """(n + 2,) powers 0, .., 1 for n densities in between."""
    return (np.arange(n + 2) / (n + 1.0)) ** SLOW_START


def transition(
    rng: np.random.Generator,
    z: np.ndarray,
    at: Point,
    terms: Callable[[np.ndarray], Point],
    b: float,
    scales: Scales,
) -> tuple[np.ndarray, Point, int]:
    """Hamiltonian transition of g_b with a random number of steps, with acceptance (Neal 2011).

    The number of steps does not depend on the vector, and a leapfrog trajectory retraces itself
    when its momentum is negated, so the transition is reversible.

    Returns
    -------
    (d,) vector, its terms, number of gradients
    """
    root = np.sqrt(scales.variances)
    momentum = rng.standard_normal(len(z)) / root
    leaps = int(rng.integers(1, scales.max_leaps + 1))
    new, there = z, at
    energy = at.log_density(b) - 0.5 * np.sum(scales.variances * momentum**2)
    for k in range(leaps):
        momentum = momentum + 0.5 * scales.step * there.gradient(b)
        new = new + scales.step * scales.variances * momentum
        there = terms(new)
        if there.log_density(b) == -np.inf:  # the reverse trajectory would stop here too
            return z, at, k + 1
        momentum = momentum + 0.5 * scales.step * there.gradient(b)
    change = there.log_density(b) - 0.5 * np.sum(scales.variances * momentum**2) - energy
    if np.log(rng.random()) < change:
        return new, there, leaps
    return z, at, leaps


def cross(
    rng: np.random.Generator,
    z: np.ndarray,
    terms: Callable[[np.ndarray], Point],
    scales: Scales,
    n: int,
    up: bool,
) -> Crossing:
    """Cross a bridge of n densities, up from g_0 to g_1 or down.

    Parameters
    ----------
    z : (d,) array
        Starting point.
    terms : callable
        A vector to its `Point`.
    scales : Scales
        The same in both directions.
    n : int
        T; with 0 the weight is that of a plain jump.
    """
    powers = spaced(n)
    if not up:
        powers = powers[::-1]
    at = terms(z)
    log_weight, gradients = 0.0, 1
    for now, then in zip(powers[:-1], powers[1:], strict=True):
        if at.log_density(now) == -np.inf:
            return Crossing(z, -np.inf, gradients)
        log_weight += (then - now) * at.gain
        if not np.isfinite(log_weight):
            return Crossing(z, -np.inf, gradients)
        if then not in (0.0, 1.0):
            z, at, more = transition(rng, z, at, terms, then, scales)
            gradients += more
    return Crossing(z, float(log_weight), gradients)
