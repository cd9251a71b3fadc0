"""Log density, quantiles and draws of mixtures of normals, one mixture per row.

The components of row i are ``parts[starts[i] : starts[i + 1]]``, each with weight, mean and
variance; the weights of a row add up to 1. A component without variance is a point.
"""

import math

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.mondrian.predict.mixture import MEAN, VAR, WEIGHT

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_STEPS = 200


def by_row(parts, counts):
    """Join the components of several trees, each in the order of the rows; equal tree weights."""
    rows = np.concatenate([np.repeat(np.arange(c.size), c) for c in counts])
    order = np.argsort(rows, kind="stable")
    joined = np.concatenate(parts)[order]
    joined[:, WEIGHT] /= len(parts)
    starts = np.concatenate([[0], np.cumsum(np.sum(counts, axis=0))])
    return joined, starts


@njit(cache=True, nogil=True)
def log_density(parts, starts, y, out):
    """Log density of each row's mixture at its y."""
    for i in range(y.size):
        largest, total = -np.inf, 0.0
        for k in range(starts[i], starts[i + 1]):
            weight, var = parts[k, WEIGHT], parts[k, VAR]
            if weight == 0.0:
                continue
            away = y[i] - parts[k, MEAN]
            if var > 0.0:
                z = away / math.sqrt(var)
                term = math.log(weight) - 0.5 * (math.log(var) + z * z) - _HALF_LOG_2PI
                if term == -np.inf:
                    continue  # so far that its square overflows
            elif away == 0.0:
                largest, total = np.inf, 1.0  # a point of positive probability
                break
            else:
                continue
            if term > largest:
                total = total * math.exp(largest - term) + 1.0
                largest = term
            else:
                total += math.exp(term - largest)
        out[i] = largest + math.log(total) if total > 0.0 else -np.inf


@njit(cache=True)
def distribution(parts, start, stop, at):
    """Distribution function and density at ``at``; point masses do not count in the density."""
    below, density = 0.0, 0.0
    for k in range(start, stop):
        weight, away, var = parts[k, WEIGHT], at - parts[k, MEAN], parts[k, VAR]
        if var > 0.0:
            z = away / math.sqrt(var)
            below += weight * 0.5 * math.erfc(-z / math.sqrt(2.0))
            density += weight * math.exp(-0.5 * z * z - _HALF_LOG_2PI) / math.sqrt(var)
        elif away >= 0.0:
            below += weight
    return below, density


@njit(cache=True, nogil=True)
def quantiles(parts, starts, levels, scores, out):
    """Quantile of each row's mixture at each level; ``scores`` are those of a standard normal.

    Newton's method, restricted to the range of the components' quantiles.
    """
    for i in range(starts.size - 1):
        for q in range(levels.size):
            low, high = np.inf, -np.inf
            for k in range(starts[i], starts[i + 1]):
                if parts[k, WEIGHT] > 0.0:
                    own = parts[k, MEAN] + scores[q] * math.sqrt(parts[k, VAR])
                    low, high = min(low, own), max(high, own)
            at = 0.5 * (low + high)
            tolerance = 1e-12 * max(high - low, abs(high) + abs(low))
            for _ in range(_STEPS):
                if high - low <= tolerance:
                    break
                below, density = distribution(parts, starts[i], starts[i + 1], at)
                if below < levels[q]:
                    low = at
                else:
                    high = at
                step = (levels[q] - below) / density if density > 0.0 else np.inf
                if abs(step) <= tolerance:
                    at += step
                    break
                at = at + step if low < at + step < high else 0.5 * (low + high)
            out[i, q] = min(max(at, low), high)


@njit(cache=True)
def draw(rng, parts, starts, out):
    """Draws of each row's mixture: row i of ``out``."""
    for i in range(starts.size - 1):
        for s in range(out.shape[1]):
            left_over = rng.random()
            k = starts[i]
            while k < starts[i + 1] - 1 and left_over >= parts[k, WEIGHT]:
                left_over -= parts[k, WEIGHT]
                k += 1
            out[i, s] = parts[k, MEAN] + math.sqrt(parts[k, VAR]) * rng.standard_normal()
