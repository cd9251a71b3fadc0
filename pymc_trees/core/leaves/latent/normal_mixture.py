"""Mixture of Normals with means eta + shift; the latent variable is the component."""

import math
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.latent.contract import register_path


class NormalMixture(NamedTuple):
    """Numbers of a row: y; then for each component log of its weight, shift, sd."""


@njit(cache=True)
def _log_component(numbers, k, eta):
    log_weight, shift, sd = numbers[3 * k + 1], numbers[3 * k + 2], numbers[3 * k + 3]
    z = (numbers[0] - eta - shift) / sd
    return log_weight - 0.5 * (z * z + math.log(2.0 * math.pi)) - math.log(sd)


@njit(cache=True)
def _log_row(path, numbers, eta):
    largest, total = -np.inf, 0.0
    for k in range(numbers.size // 3):
        term = _log_component(numbers, k, eta)
        if term > largest:
            total = total * math.exp(largest - term) + 1.0
            largest = term
        elif term > -np.inf:
            total += math.exp(term - largest)
    return largest + math.log(total)


@njit(cache=True)
def _draw_row(path, rng, numbers, eta):
    point = math.log(rng.random()) + _log_row(path, numbers, eta)
    below, chosen = -np.inf, 0
    for k in range(numbers.size // 3):
        term = _log_component(numbers, k, eta)
        if term == -np.inf:
            continue
        chosen = k
        larger, smaller = max(below, term), min(below, term)
        below = larger + math.log1p(math.exp(smaller - larger))
        if point < below:
            break
    sd = numbers[3 * chosen + 3]
    return numbers[0] - numbers[3 * chosen + 2], 1.0 / (sd * sd)


register_path(NormalMixture, draw_row=_draw_row, log_row=_log_row)
