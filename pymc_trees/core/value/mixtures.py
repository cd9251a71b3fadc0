"""Mixtures of Normals, row by row: made of the functions of a draw at all cells of a column.

Row i has the components ``start[i]`` to ``start[i + 1]`` of the arrays weight, mean and sd, whose
weights add up to 1.
"""

import math

import numpy as np

from pymc_trees.core.compile.cache import njit

ROOT_HALF = math.sqrt(0.5)
ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
FAR = 9.0
"""Sds from which on a Normal has no mass that doubles would show beside 1."""
COARSE, ROUGH = 16, 1e-3
"""Every so many components are looked at first, until the probability is so near."""
PER_SD = 128
"""Places of a table for each sd, between which the Normal is a cubic: to 2e-11."""
_AT = np.arange(-FAR * PER_SD, FAR * PER_SD + 2) / PER_SD
TABLE = np.stack(
    [
        [0.5 * math.erfc(-z * ROOT_HALF) for z in _AT],
        [math.exp(-0.5 * z * z) / (ROOT_TWO_PI * PER_SD) for z in _AT],
    ],
    axis=-1,
)
"""Distribution function there, and its difference by the tangent from one place to the next."""
STEPS = 100
"""Of a search for a quantile, at the most; some eight are enough."""


@njit(cache=True, nogil=True)
def mass_between(a, b):
    """Probability of a standard Normal between two numbers, exact in both tails."""
    if a > 0.0:
        a, b = -b, -a
    return 0.5 * (math.erfc(-b * ROOT_HALF) - math.erfc(-a * ROOT_HALF))


@njit(cache=True, nogil=True)
def add_components(outputs, centre, edges, share, least, tolerance, used, weight, mean, sd):
    """Add the law of y in a draw, with z ~ N(centre, 1) in the cells between edges.

    Neighbouring cells with the same functions are one component.

    Parameters
    ----------
    outputs : (C, b, 2) float64
        Mean and log sd of y, by cell.
    centre : (b,) float64
    edges : (C + 1,) float64
        The first and the last are infinite.
    share : float
        Weight of the draw.
    least : float
        Sd of rounding, whose square is added to the variance.
    tolerance : (2,) float64
        Differences of each output that running sums may make out of nothing.
    used : (b,) int64
        Components of each row so far; increased.
    weight, mean, sd : (b, K) float64
        Written to from ``used`` on.
    """
    n_cells = outputs.shape[0]
    for i in range(outputs.shape[1]):
        low, k = 0, used[i]
        for c in range(n_cells):
            last = c + 1 == n_cells
            if not last:
                last = (
                    abs(outputs[c + 1, i, 0] - outputs[low, i, 0]) > tolerance[0]
                    or abs(outputs[c + 1, i, 1] - outputs[low, i, 1]) > tolerance[1]
                )
            if last:
                mass = mass_between(edges[low] - centre[i], edges[c + 1] - centre[i])
                if mass > 0.0:
                    weight[i, k] = share * mass
                    mean[i, k] = outputs[low, i, 0]
                    sd[i, k] = math.sqrt(math.exp(2.0 * outputs[low, i, 1]) + least * least)
                    k += 1
                low = c + 1
        used[i] = k


@njit(cache=True, nogil=True)
def moments(start, weight, mean, sd, out):
    """Write mean and sd of each row to (n, 2)."""
    for i in range(start.size - 1):
        total = 0.0
        for k in range(start[i], start[i + 1]):
            total += weight[k] * mean[k]
        variance = 0.0
        for k in range(start[i], start[i + 1]):
            variance += weight[k] * (sd[k] * sd[k] + (mean[k] - total) ** 2)
        out[i, 0], out[i, 1] = total, math.sqrt(variance)


@njit(cache=True, nogil=True)
def log_densities(start, weight, mean, sd, y, out):
    """Write the log density of each row at (n, Q) numbers."""
    for i in range(y.shape[0]):
        for q in range(y.shape[1]):
            if np.isnan(y[i, q]):
                out[i, q] = np.nan
                continue
            most, total = -np.inf, 0.0
            for k in range(start[i], start[i + 1]):
                z = (y[i, q] - mean[k]) / sd[k]
                at = math.log(weight[k] / (sd[k] * ROOT_TWO_PI)) - 0.5 * z * z
                if at > most:
                    total = total * math.exp(most - at) + 1.0
                    most = at
                elif at > -np.inf:
                    total += math.exp(at - most)
            out[i, q] = most + math.log(total) if total > 0.0 else -np.inf


@njit(cache=True, nogil=True)
def below_and_density(first, last, stride, weight, mean, precision, y):
    """Probability below y and density there, of every so many components; to 2e-11.

    ``precision`` are the inverses of the sds.
    """
    below, density, total = 0.0, 0.0, 0.0
    for k in range(first, last, stride):
        z = (y - mean[k]) * precision[k]
        total += weight[k]
        if z >= FAR:
            below += weight[k]
        elif z > -FAR:
            place = (z + FAR) * PER_SD
            c = int(place)
            t = place - c
            low, slope = TABLE[c, 0], TABLE[c, 1]
            rise, next_slope = TABLE[c + 1, 0] - low, TABLE[c + 1, 1]
            a, b = slope - rise, rise - next_slope
            below += weight[k] * (low + t * rise + t * (1.0 - t) * (a * (1.0 - t) + b * t))
            density += weight[k] * (slope + t * (next_slope - slope)) * precision[k]
    return below / total, density * PER_SD / total


@njit(cache=True, nogil=True)
def probabilities(start, weight, mean, sd, y, out):
    """Write the probability below (n, Q) numbers."""
    for i in range(y.shape[0]):
        for q in range(y.shape[1]):
            below = 0.0
            for k in range(start[i], start[i + 1]):
                below += weight[k] * 0.5 * math.erfc((mean[k] - y[i, q]) / sd[k] * ROOT_HALF)
            out[i, q] = below


@njit(cache=True, nogil=True)
def quantiles(start, weight, mean, sd, probability, at, close, out):
    """Write the quantiles of each row to (n, Q); ``at`` are those of a standard Normal.

    By Newton's method within a bracket, which is halved where a step leaves it, or is no shorter
    than half of the one before, as on a narrow peak far from the quantile: first for some of the
    components, which has most of the way, then for all.
    """
    precision = 1.0 / sd
    for i in range(out.shape[0]):
        first, last = start[i], start[i + 1]
        for q in range(probability.size):
            least, most = np.inf, -np.inf
            for k in range(first, last):
                end = mean[k] + sd[k] * at[q]
                least, most = min(least, end), max(most, end)
            x = 0.5 * (least + most)
            for stride in (COARSE, 1):
                if stride > 1 and last - first < 20 * stride:
                    continue
                low, high = least, most
                before = high - low
                for _ in range(STEPS):
                    below, density = below_and_density(
                        first, last, stride, weight, mean, precision, x
                    )
                    off = below - probability[q]
                    if off < 0.0:
                        low = x
                    elif off > 0.0:
                        high = x
                    if abs(off) < (close if stride == 1 else ROUGH) or not low < high:
                        break
                    step = off / density if density > 0.0 else np.inf
                    if not (low < x - step < high and 2.0 * abs(step) <= before):
                        step = x - 0.5 * (low + high)
                    x, before = x - step, abs(step)
            out[i, q] = x
