"""The predictive distribution of a number, given trees: a mixture of normals."""

import math
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register
from pymc_trees.mondrian.kernels.tree import (
    LEAVES,
    MAX_TIMES,
    ROOT,
    branching_times,
    distance,
    greatest_depth,
    start_and_end,
)

# --------------------------------- Posterior of the mean of each node: Gaussian belief propagation
#
# Hierarchical Gaussian prior (thesis, 6.3): ``mu_root ~ N(mu_H, phi_root)``, ``mu_j ~
# N(mu_parent, phi_j)``, ``y ~ N(mu_leaf, noise)``, with ``phi_j = rest(start) - rest(end)`` over
# the time in which the node has no split, and ``rest(t) = gamma_1 (1 - logistic(gamma_2 t))`` the
# variance to come.
#
# Messages are kept as mean and variance. No message is without information, since each node has
# seen rows, and a variance may be 0 without a division by it.


class Hierarchy(NamedTuple):
    """Settings of the prior."""

    mean: float
    """mu_H."""
    gamma_1: float
    gamma_2: float
    noise: float
    """Variance of a label about the mean of its leaf."""


class Messages(NamedTuple):
    """Exact belief: for each node the messages from below and from everything else."""

    prior: Hierarchy
    mean_below: np.ndarray
    """(nodes,) of mu_j, from the rows of the node."""
    var_below: np.ndarray
    mean_above: np.ndarray
    """(nodes,) of mu_parent, from the prior and all rows but the node's."""
    var_above: np.ndarray


@njit(cache=True)
def rest(prior, time):
    """Prior variance that remains after ``time``."""
    return prior.gamma_1 / (1.0 + np.exp(prior.gamma_2 * time))


@njit(cache=True)
def edge(tree, prior, node):
    """Prior variance phi_j of a node's mean about its parent's."""
    start, end = start_and_end(tree, node)
    return rest(prior, start) - rest(prior, end)


@njit(cache=True)
def product(mean, var, other_mean, other_var):
    """Mean and variance of the product of two normal densities."""
    total = var + other_var
    if total == 0.0:
        return 0.5 * (mean + other_mean), 0.0
    share = var / total
    return mean + share * (other_mean - mean), share * other_var


@njit(cache=True, nogil=True)
def send_messages(tree, labels, prior):
    """Belief propagation, from the leaves to the root and back."""
    column, left, right = tree.column, tree.left, tree.right
    room = column.size
    mean_below, var_below = np.empty(room), np.empty(room)
    mean_above, var_above = np.empty(room), np.empty(room)
    order = np.empty(2 * tree.state[LEAVES], dtype=np.int64)
    order[0] = tree.state[ROOT]
    n = 1
    for k in range(order.size - 1):
        node = order[k]
        if column[node] >= 0:
            order[n], order[n + 1] = left[node], right[node]
            n += 2
    for k in range(n - 1, -1, -1):
        node = order[k]
        if column[node] < 0:
            mean_below[node] = labels.mean[node]
            var_below[node] = prior.noise / labels.n[node]
        else:
            a, b = left[node], right[node]
            mean_below[node], var_below[node] = product(
                mean_below[a],
                var_below[a] + edge(tree, prior, a),
                mean_below[b],
                var_below[b] + edge(tree, prior, b),
            )
    mean_above[order[0]], var_above[order[0]] = prior.mean, 0.0
    for k in range(n):
        node = order[k]
        if column[node] < 0:
            continue
        at_node = var_above[node] + edge(tree, prior, node)
        for child, other in ((left[node], right[node]), (right[node], left[node])):
            mean_above[child], var_above[child] = product(
                mean_above[node],
                at_node,
                mean_below[other],
                var_below[other] + edge(tree, prior, other),
            )
    return Messages(prior, mean_below, var_below, mean_above, var_above)


# ----------------------- Components of a mixture of normals as rows of an array, and their moments


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


# -------- Fast approximation: each node predicts the mean and variance of its rows (thesis, 6.3.3)
#
# A point that branches off above a node, at any time, gets a new parent with the rows of that
# node, and a leaf without rows: its prediction is that of the node.


@njit(cache=True)
def _empirical_components(tree, labels, belief, x, buffers, n):
    column, cut, time, box = tree.column, tree.cut, tree.time, tree.box
    lifetime, n_rows, mean, squares = tree.lifetime[0], labels.n, labels.mean, labels.squares
    out, noise = buffers.out, belief.noise
    j, start, stays = tree.state[ROOT], 0.0, 1.0
    while True:
        end = min(time[j], lifetime)
        eta = distance(box[j], x)
        is_leaf = column[j] < 0
        weight = stays
        if not is_leaf:
            weight = -stays * np.expm1(-eta * (end - start)) if eta > 0.0 else 0.0
        if weight > 0.0:
            # At a leaf the prediction is the same whether or not the point branches off.
            out[n, WEIGHT], out[n, MEAN] = weight, mean[j]
            out[n, VAR] = squares[j] / n_rows[j] + noise
            n += 1
            stays -= weight
        if is_leaf or stays <= 0.0:
            return n
        j, start = (tree.left[j] if x[column[j]] <= cut[j] else tree.right[j]), end


register(Hierarchy, append_components=_empirical_components)


# ------- The predictive distribution of a number: a mixture of normals (thesis, 6.3-6.5, alg. 6.5)
#
# One component for each time at which the new point may branch off, and one for not branching
# off, which the thesis omits (footnote 4 of chapter 6; lines 8 and 10 of alg. 6.5 write both
# weights of a leaf into one place). The time of branching is integrated out: with s the prior
# variance used since the parent's time, the mean of the new parent is normal given the rows, with
# a mean that is linear and a variance that is quadratic in s.


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


# -------------------- Log density, quantiles and draws of mixtures of normals, one mixture per row
#
# The components of row i are ``parts[starts[i] : starts[i + 1]]``, each with weight, mean and
# variance; the weights of a row add up to 1. A component without variance is a point.


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


# ----------------------------------------- Predictions of each row from all others, given the tree
#
# The tree does not depend on the labels. The prediction for a row by a tree of all other rows,
# extended by this row, is therefore that of the tree without the row's label in its leaf.


@njit(cache=True, nogil=True)
def add_left_out(tree, labels, belief, y, leaves, first, second):
    """Add each row's mean and mean square, its own label left out; ``leaves`` are the rows'."""
    noise = belief.prior.noise
    n_rows, mean_of = labels.n, labels.mean
    mean_above, var_above = belief.mean_above, belief.var_above
    for i in range(y.size):
        j = leaves[i]
        n = n_rows[j]
        mean, var = mean_above[j], var_above[j] + edge(tree, belief.prior, j)
        if n > 1.0:
            others = mean_of[j] - (y[i] - mean_of[j]) / (n - 1.0)
            mean, var = product(mean, var, others, noise / (n - 1.0))
        first[i] += mean
        second[i] += var + noise + mean * mean
