"""Components of a mixture of normals as rows of an array, and their moments."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic
from pymc_trees.core.mondrian.branch import MAX_TIMES
from pymc_trees.core.mondrian.tree import greatest_depth

WEIGHT, MEAN, VAR = range(3)


class Buffers(NamedTuple):
    """Arrays that components are written to."""

    weight: np.ndarray
    """(MAX_TIMES,) weights of the times of branching."""
    decay: np.ndarray
    """(MAX_TIMES,) value of the exponential at each."""
    out: np.ndarray
    """(n, 3) weight, mean and variance of each component."""


@generic("belief")
def append_components(tree, labels, belief, x, buffers, n):
    """Append the components of a point to the n in ``buffers.out``; return their number."""


@njit(cache=True)
def _most(tree):
    return (greatest_depth(tree) + 1) * MAX_TIMES + 1


@njit(cache=True, nogil=True)
def collect(tree, labels, belief, X):
    """Components (weight, mean, variance) of all rows in sequence, and their number by row."""
    most = _most(tree)
    out = np.empty((2 * most, 3))
    weight, decay = np.empty(MAX_TIMES), np.empty(MAX_TIMES)
    counts = np.empty(X.shape[0], dtype=np.int64)
    n = 0
    for i in range(X.shape[0]):
        if n + most > out.shape[0]:
            longer = np.empty((2 * out.shape[0], 3))
            longer[:n] = out[:n]
            out = longer
        stop = append_components(tree, labels, belief, X[i], Buffers(weight, decay, out), n)
        counts[i] = stop - n
        n = stop
    return out[:n].copy(), counts


@njit(cache=True, nogil=True)
def add_moments(tree, labels, belief, X, centre, first, second):
    """Add each row's mean and mean square of one tree (6.4), both about ``centre``."""
    out = np.empty((_most(tree), 3))
    buffers = Buffers(np.empty(MAX_TIMES), np.empty(MAX_TIMES), out)
    _add_rows(tree, labels, belief, X, buffers, centre, first, second)


@njit(cache=True)
def _add_rows(tree, labels, belief, X, buffers, centre, first, second):
    """The loop of `add_moments`, in a kernel that allocates no array."""
    out = buffers.out
    for i in range(X.shape[0]):
        for k in range(append_components(tree, labels, belief, X[i], buffers, 0)):
            mean = out[k, MEAN] - centre
            first[i] += out[k, WEIGHT] * mean
            second[i] += out[k, WEIGHT] * (out[k, VAR] + mean * mean)
