"""The predictive distribution of a number: a mixture of normals (thesis, 6.3-6.5, alg. 6.5).

A component for each time at which the new point may branch off, and one for not doing so, which the
thesis leaves out (footnote 4 of chapter 6; lines 8 and 10 of alg. 6.5 write both weights of a leaf
into one place). The time of branching is integrated, not plugged in: with s the prior variance used
up since the parent's time, the mean of the new parent is normal given the rows, with a mean that is
linear and a variance that is quadratic in s.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.borrow import borrowed
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.mondrian.branch import MAX_TIMES, branching_times, distance
from pymc_trees.core.mondrian.predict.belief import product, rest
from pymc_trees.core.mondrian.predict.components import MEAN, VAR, WEIGHT, add_components
from pymc_trees.core.mondrian.tree import ROOT, greatest_depth


class Span(NamedTuple):
    """Times between which a point may branch off a branch, and what is believed on both sides."""

    start: float
    end: float
    below: tuple[float, float]
    """Mean and variance of the message from below."""
    above: tuple[float, float]
    """Those of the message from above."""


class Buffers(NamedTuple):
    """Arrays that components are written to."""

    weight: np.ndarray
    """(MAX_TIMES,) weights of the times of branching."""
    decay: np.ndarray
    """(MAX_TIMES,) what is left of the exponential at each."""
    out: np.ndarray
    """(n, 3) weight, mean and variance of each component."""


@njit(cache=True)
def _branch(prior, span, eta, last, stays, buffers, n):
    """Append the components of a point that branches off within a span; how many there are then.

    ``last`` is what the prior has in store at the end of the lifetime.
    """
    weight, decay, out = buffers
    (m, v), (c, C) = span.below, span.above
    to_start = rest(prior, span.start)
    total = C + to_start - rest(prior, span.end) + v
    n_times = branching_times(eta, prior.gamma_2, span.end - span.start, weight, decay)
    growth = np.exp(-prior.gamma_2 * span.start)
    for k in range(n_times):
        ahead = growth * decay[k]  # exp(-gamma_2 t) at the time t of branching
        to_come = prior.gamma_1 * ahead / (1.0 + ahead)
        var = C + to_start - to_come
        share = var / total if total > 0.0 else 0.0
        out[n + k, WEIGHT] = stays * weight[k]
        out[n + k, MEAN] = c + share * (m - c)
        out[n + k, VAR] = var * (1.0 - share) + to_come - last + prior.noise
    return n + n_times


@njit(cache=True)
def _components(tree, belief, x, buffers, n):
    """Append the components of a point; how many there are then."""
    column, cut, time, box = tree.column, tree.cut, tree.time, tree.box
    prior, lifetime, out = belief.prior, tree.lifetime[0], buffers.out
    mean_below, var_below = belief.mean_below, belief.var_below
    mean_above, var_above = belief.mean_above, belief.var_above
    j, start, stays = tree.state[ROOT], 0.0, 1.0
    last = rest(prior, lifetime)
    while True:
        end = min(time[j], lifetime)
        eta = distance(box[j], x)
        below, above = (mean_below[j], var_below[j]), (mean_above[j], var_above[j])
        if eta > 0.0:
            span = Span(start, end, below, above)
            n = _branch(prior, span, eta, last, stays, buffers, n)
            stays *= np.exp(-eta * (end - start))
        if column[j] < 0 or stays == 0.0:
            break
        j, start = (tree.left[j] if x[column[j]] <= cut[j] else tree.right[j]), end
    if stays > 0.0:
        edge = rest(prior, start) - rest(prior, end)
        mean, var = product(above[0], above[1] + edge, below[0], below[1])
        out[n, WEIGHT], out[n, MEAN], out[n, VAR] = stays, mean, var + prior.noise
        n += 1
    return n


@njit(cache=True, nogil=True)
def collect(tree, belief, X):
    """Components (weight, mean, variance) of all rows one after another; how many each row has."""
    most = (greatest_depth(tree) + 1) * MAX_TIMES + 1
    out = np.empty((2 * most, 3))
    weight, decay = np.empty(MAX_TIMES), np.empty(MAX_TIMES)
    counts = np.empty(X.shape[0], dtype=np.int64)
    n = 0
    for i in range(X.shape[0]):
        if n + most > out.shape[0]:
            longer = np.empty((2 * out.shape[0], 3))
            longer[:n] = out[:n]
            out = longer
        stop = _components(*borrowed((tree, belief, X[i], Buffers(weight, decay, out))), n)
        counts[i] = stop - n
        n = stop
    return out[:n].copy(), counts


@njit(cache=True, nogil=True)
def add_moments(tree, belief, X, centre, first, second):
    """Add each row's mean and mean square of one tree (6.4), both about ``centre``."""
    out = np.empty(((greatest_depth(tree) + 1) * MAX_TIMES + 1, 3))
    buffers = Buffers(np.empty(MAX_TIMES), np.empty(MAX_TIMES), out)
    tree, belief, X, lent = borrowed((tree, belief, X, buffers))
    for i in range(X.shape[0]):
        n = _components(tree, belief, X[i], lent, 0)
        add_components(out, n, centre, first, second, i)
