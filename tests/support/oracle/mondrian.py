"""The Mondrian process on tiny data: the law of the leaves and of the root's split, exactly.

Given the time s of its parent's split, a node of rows M with linear dimension R is

    a leaf                with probability exp(-R (L - s)),
    split at t in dt      with density     R exp(-R (t - s)),

and column j is cut in the gap (a, b) of its values with probability (b - a) / R. So the law of the
leaves below it is, as a function of s,

    Q_M(s) = exp(-R (L - s)) [{M}] + exp(R s) integral_s^L exp(-R t) sum_gaps (b - a) Q_left(t) x
             Q_right(t) dt.

Every function of time is entire; it is kept by its values at Chebyshev points of [0, L], and
integrated as the polynomial through them, whose error is at the level of rounding.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from .splits import rows_of

POINTS = 36


class RootSplit(NamedTuple):
    """Moments of the time of the root's split over the trees that have one."""

    mass: float
    mean: float
    square: float


class MondrianLaw:
    """Prior of partitions, depths and root splits of a Mondrian process on the rows of X.

    Parameters
    ----------
    X : (n, p) array
    lifetime : float
    """

    def __init__(self, X, lifetime):
        self.X, self.lifetime = np.asarray(X, dtype=float), float(lifetime)
        self.n, self.p = self.X.shape
        at = chebyshev.chebpts1(POINTS)
        self.times = self.lifetime * (at + 1) / 2
        fit = np.linalg.inv(chebyshev.chebvander(at, POINTS - 1))
        whole = chebyshev.chebint(fit, axis=0) * self.lifetime / 2  # antiderivatives, by column
        ends = chebyshev.chebvander(np.ones(1), POINTS) @ whole
        self.to_the_end = ends - chebyshev.chebvander(at, POINTS) @ whole  # integral from s to L
        start = chebyshev.chebvander(-np.ones(1), POINTS) @ whole
        self.over_all = (ends - start)[0]  # integral from 0 to L
        self.memo = {}

    def extents(self, mask):
        """Sides of the box of a node's rows."""
        rows = self.X[list(rows_of(mask))]
        return rows.max(axis=0) - rows.min(axis=0)

    def split_densities(self, mask):
        """dict (partition, depth, column) -> density exp(-R t) (b - a) Q x Q at the times."""
        found = {}
        rows, rate = rows_of(mask), self.extents(mask).sum()
        for j in range(self.p):
            levels = sorted({float(self.X[i, j]) for i in rows})
            for a, b in zip(levels, levels[1:]):
                left = sum(1 << i for i in rows if self.X[i, j] <= a)
                here = (b - a) * np.exp(-rate * self.times)
                for (part, depth), q in self.below(left).items():
                    for (other, depth2), q2 in self.below(mask & ~left).items():
                        key = (part | other, 1 + max(depth, depth2), j)
                        found[key] = found.get(key, 0.0) + here * q * q2
        return found

    def below(self, mask):
        """dict (partition, depth) -> Q at the times."""
        if mask not in self.memo:
            rate = self.extents(mask).sum()
            out = {}
            leaf = frozenset([frozenset(rows_of(mask))])
            out[leaf, 0] = np.exp(-rate * (self.lifetime - self.times))
            for (part, depth, _), h in self.split_densities(mask).items():
                mass = np.exp(rate * self.times) * (self.to_the_end @ h)
                out[part, depth] = out.get((part, depth), 0.0) + mass
            self.memo[mask] = out
        return self.memo[mask]

    def posterior(self, log_marginal):
        """Laws of partition, depth, root column, and of the root's time, given leaf marginals.

        Returns
        -------
        partitions, depths, roots : dict -> probability; the column of a root leaf is -1
        root : RootSplit
        log_evidence : float
        """
        everything, memo = (1 << self.n) - 1, {}

        def likelihood(part):
            for rows in part:
                if rows not in memo:
                    memo[rows] = log_marginal(rows)
            return math.exp(math.fsum(memo[rows] for rows in part))

        leaf = frozenset([frozenset(range(self.n))])
        stump = math.exp(-self.extents(everything).sum() * self.lifetime) * likelihood(leaf)
        masses, moments = {(leaf, 0, -1): stump}, np.zeros(3)
        for key, h in self.split_densities(everything).items():
            h = h * likelihood(key[0])
            masses[key] = float(self.over_all @ h)
            moments += [self.over_all @ (h * self.times**k) for k in range(3)]
        total = math.fsum(masses.values())
        laws = []
        for part in range(3):
            law = {}
            for key, mass in masses.items():
                law[key[part]] = law.get(key[part], 0.0) + mass / total
            laws.append(law)
        root = RootSplit(moments[0] / total, moments[1] / total, moments[2] / total)
        return *laws, root, math.log(total)
