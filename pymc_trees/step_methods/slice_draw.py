"""One draw of a number by slice sampling (Neal 2003)."""

from collections.abc import Callable

import numpy as np

MOST_STEPS = 100
"""Widths that an interval may have; so many only where the width is far too small."""


def slice_draw(
    rng: np.random.Generator, log_density: Callable[[float], float], start: float, width: float
) -> tuple[float, int]:
    """Next number of a chain that leaves a density invariant: stepping out, then shrinkage.

    Parameters
    ----------
    rng : numpy.random.Generator
    log_density : function of a number
        -inf or NaN where the density is 0.
    start : float
        Present number.
    width : float
        Of the first interval.

    Returns
    -------
    number : float
        NaN when the density is 0, or not finite, at ``start``.
    evaluations : int
        Of the density.

    References
    ----------
    Neal (2003). Slice sampling. The Annals of Statistics 31(3), 705-767, figures 3 and 5.
    """
    at_start = log_density(start)
    if not np.isfinite(at_start):
        return np.nan, 1
    level = at_start - rng.standard_exponential()
    left = start - width * rng.random()
    right = left + width
    to_the_left = int(rng.integers(MOST_STEPS))
    to_the_right = MOST_STEPS - 1 - to_the_left
    evaluations = 1
    while to_the_left > 0:
        evaluations += 1
        if not log_density(left) > level:
            break
        left -= width
        to_the_left -= 1
    while to_the_right > 0:
        evaluations += 1
        if not log_density(right) > level:
            break
        right += width
        to_the_right -= 1
    while True:
        new = left + rng.random() * (right - left)
        evaluations += 1
        # at the start itself the two are equal when the draw of the level rounds to nothing
        if log_density(new) >= level:
            return new, evaluations
        if new < start:
            left = new
        else:
            right = new
