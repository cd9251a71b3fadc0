"""One draw of a number by slice sampling (Neal 2003)."""

from collections.abc import Callable

import numpy as np

MAX_STEPS = 100
"""Maximal number of widths in an interval; reached only if the width is far too small."""

INITIAL_WIDTH = 1.0
"""Width before tuning; values are usually logarithms."""
WIDTH_PER_CHANGE = 3.0
"""Width relative to the mean change; independent normal draws then change by a third of it."""
WINDOW = 50
"""Number of recent draws in the mean change, so the initial transient is forgotten."""


def adapted_width(width: float, change: float, n_tunes: int) -> float:
    """Width after one more draw in tuning, given the change in that draw."""
    return width + (WIDTH_PER_CHANGE * change - width) / min(n_tunes + 2, WINDOW)


def slice_draw(
    rng: np.random.Generator, log_density: Callable[[float], float], start: float, width: float
) -> tuple[float, int]:
    """Next state of a chain that leaves a density invariant: stepping out, then shrinkage.

    Parameters
    ----------
    rng : numpy.random.Generator
    log_density : function of a number
        -inf or NaN where the density is 0.
    start : float
        Current number.
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
    log_start = log_density(start)
    if not np.isfinite(log_start):
        return np.nan, 1
    level = log_start - rng.standard_exponential()
    left = start - width * rng.random()
    right = left + width
    steps_left = int(rng.integers(MAX_STEPS))
    steps_right = MAX_STEPS - 1 - steps_left
    evaluations = 1
    while steps_left > 0:
        evaluations += 1
        if not log_density(left) > level:
            break
        left -= width
        steps_left -= 1
    while steps_right > 0:
        evaluations += 1
        if not log_density(right) > level:
            break
        right += width
        steps_right -= 1
    while True:
        new = left + rng.random() * (right - left)
        evaluations += 1
        # at the start itself the two are equal if the draw of the level rounds to 0
        if log_density(new) >= level:
            return new, evaluations
        if new < start:
            left = new
        else:
            right = new
