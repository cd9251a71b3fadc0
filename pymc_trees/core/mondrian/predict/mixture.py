"""The predictive distribution of a number: a mixture of normals (thesis, 6.3-6.5, alg. 6.5).

One component for each time at which the new point may branch off, and one for not branching off,
which the thesis omits (footnote 4 of chapter 6; lines 8 and 10 of alg. 6.5 write both weights of a
leaf into one place). The time of branching is integrated out: with s the prior variance used since
the parent's time, the mean of the new parent is normal given the rows, with a mean that is linear
and a variance that is quadratic in s.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import register
from pymc_trees.core.mondrian.branch import branching_times, distance
from pymc_trees.core.mondrian.predict.belief import Messages, product, rest
from pymc_trees.core.mondrian.predict.components import MEAN, VAR, WEIGHT
from pymc_trees.core.mondrian.tree import ROOT


class Span(NamedTuple):
    """Interval of times at which a point may branch off, and the beliefs at both ends."""

    start: float
    end: float
    below: tuple[float, float]
    """Mean and variance of the message from below."""
    above: tuple[float, float]
    """Those of the message from above."""


@njit(cache=True)
def _branch(prior, span, eta, last, stays, buffers, n):
    """Append the components of a point that branches off within a span; return their number.

    ``last`` is the prior variance that remains at the end of the lifetime.
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
def _components(tree, labels, belief, x, buffers, n):
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


register(Messages, append_components=_components)
