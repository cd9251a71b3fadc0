"""Residuals as integer multiples of a power of two: sums are exact and independent of order.

A sum of floating-point numbers depends on the order of additions, and therefore on the distribution
of rows over shards. Here the response is rounded once, and each leaf value when it is drawn, to
multiples of one unit; residuals and their sums are then 64-bit integers.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit

MOST = 2.0**62
"""Bound on the absolute value of sums of residuals."""
HEADROOM = 4
"""Bits by which residuals may exceed their expected scale."""
FINEST = 44
"""The unit is at least this many bits below the scale."""

_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)


def unit_of(scale: float, n: int) -> float:
    """Unit, a power of two, of the residuals of n rows with a given ``scale``.

    ``2**-44`` of the scale, and more beyond 16,000 rows: ``2**-38`` for a million.
    """
    bits = min(FINEST, 62 - HEADROOM - int(np.ceil(np.log2(n))))
    return float(2.0 ** (np.ceil(np.log2(scale)) - bits))


def to_fixed(values: np.ndarray, unit: float) -> np.ndarray:
    """Numbers rounded to integer multiples of the unit."""
    return np.rint(np.asarray(values, dtype=np.float64) / unit).astype(np.int64)


@njit(cache=True)
def square_sum(residual):
    """Sum of the squares as two 64-bit halves of one number, the high one first."""
    high, low = np.uint64(0), np.uint64(0)
    for i in range(residual.size):
        size = np.uint64(abs(residual[i]))
        a, b = size >> _HALF, size & _LOW
        middle = a * b  # below 2**62, as a is below 2**30
        square = b * b
        first = square + ((middle & (_LOW >> np.uint64(1))) << np.uint64(33))
        high += a * a + (middle >> np.uint64(31)) + np.uint64(first < square)
        total = low + first
        high += np.uint64(total < low)
        low = total
    return high, low
