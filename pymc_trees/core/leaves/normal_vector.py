"""Prior of a leaf with K independent normal values; `rowwise` or `joint` have the data."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.leaves.contract import register


@by_pointer
class NormalVectorPrior(NamedTuple):
    """Prior of K leaf values."""

    mean: np.ndarray
    """(K,)"""
    sd: np.ndarray
    """(K,)"""


@njit(cache=True)
def _n_stats(leaf):
    return 1


@njit(cache=True)
def _draw_values(leaf, rng, stats, out):
    for k in range(out.size):
        out[k] = leaf.mean[k] + leaf.sd[k] * rng.standard_normal()


register(NormalVectorPrior, n_stats=_n_stats, draw_values=_draw_values)
