"""Sums of soft trees in plain Python: densities, and posteriors by quadrature.

Nothing here is shared with the kernels, and no weight is ever taken for 0.
"""

from itertools import product

import numpy as np
from scipy import stats
from scipy.special import expit


def to_unit(X_train, X):
    """(n, p) columns mapped by the training rows."""
    out = np.empty(X.shape)
    for j in range(X.shape[1]):
        values, counts = np.unique(X_train[:, j], return_counts=True)
        middle = np.cumsum(counts) - counts / 2
        heights = (middle - middle[0]) / max(middle[-1] - middle[0], 1e-300)
        for steps in 2 ** np.arange(20):
            if steps + 1 >= len(values):
                break
            levels = np.arange(steps + 1) / steps
            quantiles = np.interp(levels, heights, values)
            off = [abs(np.interp(v, quantiles, levels) - h) for v, h in zip(values, heights)]
            if max(off) <= 1.36 / len(X_train) ** 0.5:
                values, heights = quantiles, levels
                break
        out[:, j] = np.interp(X[:, j], values, heights)
    return out


def read_trees(value, m, max_nodes):
    """Nested trees of an encoded value, with their bandwidths.

    A split is (column, cut, left, right), a leaf is its value.
    """
    rows = iter(value[:max_nodes])

    def node():
        column, number = next(rows)
        return (int(column), number, node(), node()) if column >= 0 else float(number)

    trees = [node() for _ in range(m)]
    return list(zip(trees, value[max_nodes:].reshape(-1)[1 : m + 1], strict=True))


def nested(column, number):
    """Nested tree of preorder arrays."""
    rows = iter(zip(column, number, strict=True))

    def node():
        j, x = next(rows)
        return (int(j), float(x), node(), node()) if j >= 0 else float(x)

    return node()


def leaves(tree, bandwidth, u, hard=()):
    """List of the (n,) weights and the value of each leaf, from left to right."""
    if not isinstance(tree, tuple):
        return [(np.ones(len(u)), tree)]
    j, cut, left, right = tree
    gate = (u[:, j] <= cut).astype(float) if j in hard else expit((cut - u[:, j]) / bandwidth)
    other = 1 - gate if j in hard else expit((u[:, j] - cut) / bandwidth)
    return [(gate * w, v) for w, v in leaves(left, bandwidth, u, hard)] + [
        (other * w, v) for w, v in leaves(right, bandwidth, u, hard)
    ]


def function(trees, u, hard=()):
    """(n,) sum of trees."""
    return sum(w * v for tree, tau in trees for w, v in leaves(tree, tau, u, hard))


def log_shape(tree, alpha, beta, weights, depth=0, bounds=None):
    """Log density of the splits of a tree and their rules."""
    p_split = alpha * (1 + depth) ** -beta
    if not isinstance(tree, tuple):
        return np.log1p(-p_split)
    bounds = bounds or {}
    j, cut, left, right = tree
    low, high = bounds.get(j, (0.0, 1.0))
    if not low < cut < high:
        return -np.inf
    log_p = np.log(p_split) + np.log(weights[j] / np.sum(weights)) - np.log(high - low)
    log_p += log_shape(left, alpha, beta, weights, depth + 1, bounds | {j: (low, cut)})
    return log_p + log_shape(right, alpha, beta, weights, depth + 1, bounds | {j: (cut, high)})


def log_prior(trees, alpha, beta, weights, bandwidth, mean, sd):
    """Log density of a forest."""
    total = 0.0
    for tree, tau in trees:
        total += log_shape(tree, alpha, beta, weights) + stats.expon.logpdf(tau, scale=bandwidth)
        values = [v for _, v in leaves(tree, tau, np.zeros((1, len(weights))))]
        total += stats.norm.logpdf(values, mean, sd).sum()
    return total


def splits_of(tree, depth=0, path=()):
    """(place, column, cut, depth, whether both children are leaves) of each split."""
    if not isinstance(tree, tuple):
        return []
    j, cut, left, right = tree
    two = not isinstance(left, tuple) and not isinstance(right, tuple)
    below = splits_of(left, depth + 1, (*path, 0)) + splits_of(right, depth + 1, (*path, 1))
    return [(path, j, cut, depth, two), *below]


def _panels(breaks, order):
    """Points and weights of Gauss-Legendre between each two breaks."""
    x, w = np.polynomial.legendre.leggauss(order)
    breaks = np.unique(breaks)
    low, high = breaks[:-1, None], breaks[1:, None]
    points = low + (high - low) * (x + 1) / 2
    return points.ravel(), ((high - low) * w / 2).ravel()


def bandwidths(mean, order):
    """Points and weights of an exponential law, on the scale of its quantiles."""
    q, w = _panels([0, 0.02, 0.1, 0.3, 0.6, 0.9, 0.99, 1], order)
    return -mean * np.log1p(-q), w


class Atoms:
    """Trees over one column by quadrature: of one shape, with weights of prior probability.

    Parameters
    ----------
    kind : {"stump", "split", "left", "right"}
        Leaves 1, 2, or 3 with the left or right child of the root split.
    u : (n,) array
        The column.
    alpha, beta, bandwidth
        Of the prior.
    order : int
        Points between two breaks.
    """

    def __init__(self, kind, u, alpha, beta, bandwidth, order=6, order_tau=4):
        p = [alpha * (1 + d) ** -beta for d in range(3)]
        tau, tau_weight = bandwidths(bandwidth, order_tau)
        breaks = [0.0, *u, 1.0]
        if kind == "stump":
            self.phi, self.weight = np.ones((len(tau), len(u), 1)), tau_weight * (1 - p[0])
            self.tau = tau
            return
        cuts, weights, others = [], [], []
        for c, w in zip(*_panels(breaks, order), strict=True):
            if kind == "split":
                cuts.append(c), weights.append(w), others.append(0.5)
                continue
            low, high = (0.0, c) if kind == "left" else (c, 1.0)
            inside = [b for b in breaks if low < b < high]
            for c2, w2 in zip(*_panels([low, *inside, high], order), strict=True):
                cuts.append(c), others.append(c2), weights.append(w * w2 / (high - low))
        c, c2, w = (np.repeat(v, len(tau)) for v in (cuts, others, weights))
        self.tau = np.tile(tau, len(cuts))
        first = expit((c[:, None] - u) / self.tau[:, None])
        second = expit((c2[:, None] - u) / self.tau[:, None])
        if kind == "split":
            phi, prior = [first, 1 - first], p[0] * (1 - p[1]) ** 2
        else:
            prior = p[0] * p[1] * (1 - p[1]) * (1 - p[2]) ** 2
            parts = [second, 1 - second]
            phi = [first * v for v in parts] + [1 - first]
            if kind == "right":
                phi = [first] + [(1 - first) * v for v in parts]
        self.phi = np.stack(phi, axis=-1)
        self.weight = w * np.tile(tau_weight, len(cuts)) * prior


def gaussian_answers(phi, y, mean, sd, sigma, n_trees):
    """Log marginal density of y, mean and second moment of f, for each (n, L) of ``phi``."""
    n = len(y)
    covariance = sd**2 * np.einsum("aik,ajk->aij", phi, phi)
    total = covariance + sigma**2 * np.eye(n)
    centre = n_trees * mean
    d = y - centre
    solved = np.linalg.solve(total, np.broadcast_to(d[:, None], (len(phi), n, 1)))[..., 0]
    _, log_det = np.linalg.slogdet(total)
    log_m = -0.5 * (solved @ d + log_det)
    f = centre + np.einsum("aij,aj->ai", covariance, solved)
    gain = np.einsum("aij,aji->ai", covariance, np.linalg.solve(total, covariance))
    variance = np.einsum("aii->ai", covariance) - gain
    return log_m, f, f**2 + variance


def numeric_answers(phi, log_rows, mean, sd, order=24):
    """The same under any likelihood, ``log_rows`` of (..., n) values of f, by Gauss-Hermite."""
    z, w = np.polynomial.hermite_e.hermegauss(order)
    n_leaves = phi.shape[-1]
    grid = np.array(list(product(z, repeat=n_leaves)))
    weight = np.prod(list(product(w / w.sum(), repeat=n_leaves)), axis=1)
    f = np.einsum("ank,gk->agn", phi, mean + sd * grid)
    terms = log_rows(f).sum(axis=-1)
    largest = terms.max(axis=1, keepdims=True)
    share = weight * np.exp(terms - largest)
    total = share.sum(axis=1)
    first = np.einsum("ag,agn->an", share, f) / total[:, None]
    second = np.einsum("ag,agn->an", share, f**2) / total[:, None]
    return np.log(total) + largest[:, 0], first, second
