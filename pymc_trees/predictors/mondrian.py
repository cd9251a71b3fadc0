"""Mondrian trees at rows, with numpy alone: mixtures of normals, or probabilities of classes.

The draws of such a predictor are its trees. `mondrian.kernels` has the formulas and where they come
from; here all rows go down a tree together.

================ ============= =====================================================================
array            shape         meaning
================ ============= =====================================================================
``sizes``        (T,)          nodes of each tree; trees lie one after another, each in preorder
``column``       (N,)          column of a split node, -1 in a leaf
``cut``          (N,)          rows with ``x <= cut`` go left, to the next node
``right``        (N,)          right child, counted from the root of its tree
``end``          (N,)          time of the split, or the end of the tree's lifetime
``box``          (N, 2, p)     least and greatest cells of the rows of a node
``low, width``   (p,)          scale: ``(x - low) / width``
================ ============= =====================================================================

Of numbers (``posterior`` "exact"): ``below`` and ``above`` (N, 2), the messages of a node as mean
and variance, and ``prior`` (T, 4), mean, gamma_1, gamma_2 and noise. With a fast one: ``moments``
(N, 2), mean and variance of the prediction of a node. Of classes: ``counts`` (N, K), and
``smoothing`` (3,), whether there is one table a label, gamma and concentration.
"""

from functools import cache
from typing import Any

import numpy as np

from pymc_trees.core.columns.cells import MISSING

MONDRIAN = "mondrian"
EXACT, FAST, CLASSES = "exact", "fast", "classes"
FURTHEST = 1e300
ROUNDING = 4.0 * np.finfo(np.float64).eps
POWER, LATE = 3, 8.0


EARLY_POINTS, LATE_POINTS = 10, 4
MAX_TIMES = EARLY_POINTS + LATE_POINTS


@cache
def _legendre(n):
    """Points and weights on [0, 1]; `numpy.polynomial` is loaded when they are first needed."""
    points, weights = np.polynomial.legendre.leggauss(n)
    return (points + 1.0) / 2.0, weights / 2.0


class MondrianTrees:
    """Trees of a Mondrian forest.

    Parameters
    ----------
    arrays : dict of str and array
        As above.
    about : dict
        ``kind`` (`MONDRIAN`), ``posterior`` ("exact", "fast" or "classes"), ``draws`` T, ``trees``
        1, ``columns`` p, ``outputs`` K of classes, otherwise the most components of a row times 3.

    Raises
    ------
    ValueError
        When arrays are not those of trees.
    """

    kind = MONDRIAN

    def __init__(self, arrays: dict[str, np.ndarray], about: dict[str, Any]):
        self.arrays, self.about = arrays, about
        self.draws, self.trees, self.p = (int(about[k]) for k in ("draws", "trees", "columns"))
        self.n_outputs, self.posterior = int(about["outputs"]), about["posterior"]
        self._check()

    def _check(self) -> None:
        """Whether every number that is followed leads somewhere."""
        a, p = self.arrays, self.p
        own = {
            EXACT: {"below", "above", "prior"},
            FAST: {"moments"},
            CLASSES: {"counts", "smoothing"},
        }
        _require(self.posterior in own and self.trees == 1 and self.draws > 0 and p > 0)
        common = {"sizes", "column", "cut", "right", "end", "box", "low", "width"}
        _require(set(a) == common | own[self.posterior])
        sizes, column, right = a["sizes"], a["column"], a["right"]
        n = len(column)
        _require(sizes.shape == (self.draws,) and sizes.dtype.kind == "u" and sizes.all())
        _require(int(sizes.sum(dtype=np.uint64)) == n and column.dtype == right.dtype == np.int64)
        _require(a["cut"].shape == a["end"].shape == right.shape == (n,))
        _require(a["box"].shape == (n, 2, p) and a["low"].shape == a["width"].shape == (p,))
        shapes: dict[str, tuple] = {
            "below": (n, 2),
            "above": (n, 2),
            "moments": (n, 2),
            "prior": (self.draws, 4),
        }
        shapes |= {"smoothing": (3,), "counts": (n, self.n_outputs)}
        for name in own[self.posterior]:
            _require(a[name].shape == shapes[name] and np.isfinite(a[name]).all())
        for name in ("cut", "box", "low", "width"):
            _require(a[name].dtype == np.float64 and np.isfinite(a[name]).all())
        _require(a["end"].dtype == np.float64 and not np.isnan(a["end"]).any())
        _require((column >= -1).all() and (column < p).all())
        roots = np.repeat(np.cumsum(sizes, dtype=np.int64) - sizes.astype(np.int64), sizes)
        at, split = np.arange(n) - roots, column >= 0
        last = np.repeat(sizes.astype(np.int64), sizes)
        _require((right[split] > at[split] + 1).all() and (right[split] < last[split]).all())

    def thinned(self, which: np.ndarray) -> "MondrianTrees":
        """Some trees, in order."""
        a = self.arrays
        stops = np.cumsum(a["sizes"], dtype=np.int64)
        nodes = np.concatenate([np.arange(stops[t] - a["sizes"][t], stops[t]) for t in which])
        kept = dict(a)
        for name, array in a.items():
            if name in ("sizes", "prior"):
                kept[name] = array[which]
            elif name not in ("low", "width", "smoothing"):
                kept[name] = array[nodes.astype(np.int64)]
        return MondrianTrees(kept, self.about | {"draws": len(which)})


def _require(holds) -> None:
    if not holds:
        raise ValueError("its arrays are not those of Mondrian trees")


def evaluate(forest: MondrianTrees, X: np.ndarray, means: bool = False) -> np.ndarray:
    """Of each tree at (n, p) rows: (T, n, K) probabilities, or (T, n, C, 3) components.

    A component is a normal: its weight, mean and variance; components that a row does not have
    weigh nothing. With ``means`` (T, n), the means of the mixtures alone.
    """
    if (X == MISSING).any() or np.isnan(X).any():
        raise ValueError(
            "X has missing cells, which Mondrian forests do not take: impute them first."
        )
    a = forest.arrays
    with np.errstate(all="ignore"):
        x = (X - a["low"]) / a["width"]
        stops = np.cumsum(a["sizes"], dtype=np.int64)
        starts = stops - a["sizes"].astype(np.int64)
        trees = [
            _Tree(forest, t, slice(*ends)) for t, ends in enumerate(zip(starts, stops, strict=True))
        ]
        if forest.posterior == CLASSES:
            return np.stack([tree.probabilities(x) for tree in trees])
        if means:
            return np.stack([tree.means(x) for tree in trees])
        parts = [tree.components(x) for tree in trees]
    most = max(part.shape[1] for part in parts)
    found = np.zeros((len(parts), len(X), most, 3))
    for part, own in zip(parts, found, strict=True):
        own[:, : part.shape[1]] = part
    return found


class _Tree:
    """One tree, its nodes counted from its root."""

    def __init__(self, forest: MondrianTrees, number: int, nodes: slice):
        a, self.posterior = forest.arrays, forest.posterior
        self.column, self.cut, self.right = a["column"][nodes], a["cut"][nodes], a["right"][nodes]
        self.end, self.box = a["end"][nodes], a["box"][nodes]
        self.start = np.zeros(len(self.end))
        split = np.flatnonzero(self.column >= 0)
        self.start[split + 1] = self.start[self.right[split]] = self.end[split]
        if self.posterior == EXACT:
            self.below, self.above = a["below"][nodes], a["above"][nodes]
            self.prior = a["prior"][number]
        elif self.posterior == FAST:
            self.moments = a["moments"][nodes]
        else:
            self.counts = a["counts"][nodes].astype(np.float64)
            self.smoothing = a["smoothing"]

    def paths(self, x: np.ndarray):
        """Rows, and the nodes that they are in, from the root to the leaves."""
        rows, nodes = np.arange(len(x)), np.zeros(len(x), dtype=np.int64)
        while len(rows):
            yield rows, nodes
            split = self.column[nodes] >= 0
            rows, nodes = rows[split], nodes[split]
            left = x[rows, self.column[nodes]] <= self.cut[nodes]
            nodes = np.where(left, nodes + 1, self.right[nodes])

    def distance(self, x: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """Of each row from the box of its node, summed over the columns."""
        away = np.maximum(np.maximum(x - self.box[nodes, 1], self.box[nodes, 0] - x), 0.0)
        return np.minimum(away.sum(axis=1), FURTHEST)

    # ------------------------------------------------------------------------------- Numbers

    def means(self, x: np.ndarray) -> np.ndarray:
        """(n,) means of the mixtures."""
        found = np.zeros(len(x))
        for rows, part in self._parts(x):
            found[rows] += (part[..., 0] * part[..., 1]).sum(axis=1)
        return found

    def components(self, x: np.ndarray) -> np.ndarray:
        """(n, C, 3) weight, mean and variance."""
        steps = list(self._parts(x))
        width = sum(part.shape[1] for _, part in steps)
        found, at = np.zeros((len(x), width, 3)), 0
        for rows, part in steps:
            found[rows, at : at + part.shape[1]] = part
            at += part.shape[1]
        return found

    def _parts(self, x: np.ndarray):
        """Rows and their components at each step down the tree."""
        of_node = self._fast if self.posterior == FAST else self._exact
        for one in self._left(x):
            yield of_node(*one)

    def _left(self, x: np.ndarray):
        """Rows, their nodes, their distances, and how much of each has not branched off before."""
        stays = np.ones(len(x))
        for rows, nodes in self.paths(x):
            eta = self.distance(x[rows], nodes)
            before = stays[rows]
            span = self.end[nodes] - self.start[nodes]
            stays[rows] = np.where(eta > 0.0, before * np.exp(-eta * span), before)
            yield rows, nodes, eta, span, before, stays[rows]

    def _fast(self, rows, nodes, eta, span, before, after):
        is_leaf = self.column[nodes] < 0
        branches = np.where(eta > 0.0, -before * np.expm1(-eta * span), 0.0)
        weight = np.where(is_leaf, before, branches)
        part = np.concatenate([weight[:, None], self.moments[nodes]], axis=1)
        return rows, part[:, None]

    def _rest(self, time):
        """Prior variance that remains after a time."""
        _, gamma_1, gamma_2, _ = self.prior
        return gamma_1 / (1.0 + np.exp(gamma_2 * time))

    def _exact(self, rows, nodes, eta, span, before, after):
        _, gamma_1, gamma_2, noise = self.prior
        start = self.start[nodes]
        (m, v), (c, C) = self.below[nodes].T, self.above[nodes].T
        edge = self._rest(start) - self._rest(self.end[nodes])
        part = np.zeros((len(rows), MAX_TIMES + 1, 3))
        off = np.flatnonzero((eta > 0.0) & (before > 0.0))
        if len(off):
            weight, decay = branching_times(eta[off], gamma_2, span[off])
            ahead = np.exp(-gamma_2 * start[off])[:, None] * decay
            to_come = gamma_1 * ahead / (1.0 + ahead)
            var = (C + self._rest(start))[off, None] - to_come
            total = (C + edge + v)[off, None]
            share = np.where(total > 0.0, var / np.where(total > 0.0, total, 1.0), 0.0)
            last = self._rest(self.end[self.column < 0].max())
            used = weight > 0.0
            part[off, :MAX_TIMES, 0] = before[off, None] * weight
            part[off, :MAX_TIMES, 1] = np.where(
                used, c[off, None] + share * (m - c)[off, None], 0.0
            )
            rest = var * (1.0 - share) + to_come - last + noise
            part[off, :MAX_TIMES, 2] = np.where(used, rest, 0.0)
        leaves = np.flatnonzero((self.column[nodes] < 0) & (after > 0.0))
        if len(leaves):
            own = C[leaves] + edge[leaves]
            total = own + v[leaves]
            share = np.where(total > 0.0, own / np.where(total > 0.0, total, 1.0), 0.5)
            mean = c[leaves] + share * (m[leaves] - c[leaves])
            var = np.where(total > 0.0, share * v[leaves], 0.0)
            part[leaves, MAX_TIMES] = np.stack([after[leaves], mean, var + noise], axis=1)
        return rows, part

    # ------------------------------------------------------------------------------- Classes

    def probabilities(self, x: np.ndarray) -> np.ndarray:
        """(n, K) averaged over all extensions of the tree."""
        one_table, gamma, theta = self.smoothing
        n, n_classes = len(x), self.counts.shape[1]
        g = np.full((n, n_classes), 1.0 / n_classes)
        found, stays = np.zeros((n, n_classes)), np.ones(n)
        share, own, above, v = self._estimates(bool(one_table), gamma, theta)
        for rows, nodes in self.paths(x):
            span = self.end[nodes] - self.start[nodes]
            eta = self._away(x[rows], nodes)
            off = eta > 0.0
            branches = np.where(off, -np.expm1(-span * eta), 0.0)
            discount = eta / (eta + gamma) * -np.expm1(-(eta + gamma) * span)
            old = np.where(off, v[nodes] * (branches - discount), 0.0)
            new = stays[rows] * (branches - old)
            found[rows] += new[:, None] * g[rows] + (stays[rows] * old)[:, None] * share[nodes]
            stays[rows] *= 1.0 - branches
            g[rows] = own[nodes] + above[nodes][:, None] * g[rows]
            leaves = self.column[nodes] < 0
            at = rows[leaves]
            found[at] += stays[at][:, None] * g[at]
        return found

    def _estimates(self, one_table: bool, gamma: float, theta: float):
        """What each node does to the estimate of its parent."""
        counts, d = self.counts, np.exp(-gamma * (self.end - self.start))
        if one_table:
            customers = counts.copy()
            split = np.flatnonzero(self.column >= 0)
            seen = (counts > 0).astype(np.float64)
            customers[split] = seen[split + 1] + seen[self.right[split]]
            has = (customers > 0).astype(np.float64)
            tables, total = has.sum(axis=1), customers.sum(axis=1) + theta
            own = (customers - d[:, None] * has) / total[:, None]
            return has / tables[:, None], own, (theta + d * tables) / total, np.ones(len(d))
        n = counts.sum(axis=1)
        apart = n * (1.0 - d)
        weight = apart / (apart + d + theta)
        share = counts / n[:, None]
        return share, weight[:, None] * share, 1.0 - weight, n / (apart + d)

    def _away(self, x: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """Distance of each row from its box; 0 where rounding explains it."""
        total = self.distance(x, nodes)
        size = np.abs(x)
        near = (total > 0.0) & (total <= ROUNDING * np.minimum(size.sum(axis=1), FURTHEST))
        if near.any():
            out = np.maximum(x - self.box[nodes, 1], self.box[nodes, 0] - x)
            is_out = (out > ROUNDING * np.minimum(size, FURTHEST)).any(axis=1)
            total = np.where(near & ~is_out, 0.0, total)
        return total


def branching_times(eta: np.ndarray, gamma: float, span: np.ndarray):
    """(n, MAX_TIMES) weights and values of exp(-gamma u), of times u of branching off in a span.

    The quadrature of `mondrian.kernels.tree`.
    """
    n = len(eta)
    weight, decay = np.zeros((n, MAX_TIMES)), np.zeros((n, MAX_TIMES))
    alpha = gamma / eta
    early, k = alpha <= 1.0, EARLY_POINTS
    (at, share), (at_late, share_late) = _legendre(EARLY_POINTS), _legendre(LATE_POINTS)
    if early.any():
        least = np.exp(-eta[early] * span[early] / POWER)[:, None]
        z = least + (1.0 - least) * at
        weight[early, :k] = share * (1.0 - least) * POWER * z ** (POWER - 1)
        decay[early, :k] = z ** (POWER * alpha[early][:, None])
    late = np.flatnonzero(~early)
    if len(late):
        eta, span, alpha = eta[late], span[late], alpha[late]
        switch = np.minimum(span, LATE / gamma)
        least = np.exp(-gamma * switch / POWER)[:, None]
        v = least + (1.0 - least) * at
        first = share * v ** (POWER / alpha[:, None] - 1.0)
        mass = -np.expm1(-eta * switch)
        weight[late, :k] = first * (mass / first.sum(axis=1))[:, None]
        decay[late, :k] = v**POWER
        longer = span > switch
        begin, end = np.exp(-eta * switch), np.exp(-eta * span)
        r = end[:, None] + (begin - end)[:, None] * at_late
        weight[late, k:] = np.where(longer[:, None], share_late * (begin - end)[:, None], 0.0)
        decay[late, k:] = np.where(longer[:, None], r ** alpha[:, None], 0.0)
    return weight, decay
