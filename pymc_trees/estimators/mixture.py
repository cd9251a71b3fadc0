"""`Mixture`: the posterior predictive distribution of rows, over equally weighted draws."""

import numpy as np
from scipy import stats
from scipy.special import logsumexp

STEPS = 100
"""Of a search for a quantile, at the most; some eight are enough."""
CLOSE = 1e-10
"""How near the probability of a quantile is to what was asked."""


class Mixture:
    """Normal or StudentT distributions of n rows under D equally weighted draws.

    Parameters
    ----------
    loc, scale : (D, n) arrays
        Of every draw and row, in the units of y.
    df : (D, 1) array, optional
        Degrees of freedom of StudentT distributions. Default: Normals.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_trees.estimators.mixture import Mixture
    >>> law = Mixture(np.array([[0.0], [2.0]]), np.ones((2, 1)))
    >>> float(law.mean()[0]), round(float(law.std()[0]), 3), round(float(law.ppf(0.5)[0]), 6)
    (1.0, 1.414, 1.0)
    """

    def __init__(self, loc: np.ndarray, scale: np.ndarray, df: np.ndarray | None = None):
        self.loc, self.scale, self.df = loc, np.broadcast_to(scale, loc.shape), df

    @property
    def _law(self):
        return stats.norm if self.df is None else stats.t(self.df)

    def mean(self) -> np.ndarray:
        """(n,) means."""
        return self.loc.mean(axis=0)

    def std(self) -> np.ndarray:
        """(n,) standard deviations; infinite where a draw's has at most 2 degrees of freedom."""
        variance = self.scale**2
        if self.df is not None:
            heavy = self.df <= 2.0
            variance = variance * np.where(heavy, np.inf, self.df / np.where(heavy, 1, self.df - 2))
        return np.sqrt(variance.mean(axis=0) + self.loc.var(axis=0))

    def logpdf(self, y) -> np.ndarray:
        """Log densities at y: (n,) for one number a row, (n, Q) for an array of that shape."""

        def at(y):
            logs = self._law.logpdf((y - self.loc) / self.scale) - np.log(self.scale)
            return logsumexp(logs, axis=0) - np.log(len(self.loc))

        return self._each(y, at)

    def cdf(self, y) -> np.ndarray:
        """Probabilities below y, of the same shapes."""
        return self._each(y, lambda y: self._law.cdf((y - self.loc) / self.scale).mean(axis=0))

    def _each(self, y, at) -> np.ndarray:
        y = np.asarray(y)
        return at(y) if y.ndim < 2 else np.stack([at(one) for one in y.T], axis=-1)

    def ppf(self, q) -> np.ndarray:
        """Quantiles: (n,) for a number q, (n, Q) for a sequence."""
        q = np.asarray(q, dtype=np.float64)
        if q.size == 0 or not ((q > 0) & (q < 1)).all():
            raise ValueError(f"quantiles={q.tolist()}: must lie strictly between 0 and 1.")
        found = [self._quantile(one) for one in q.ravel()]
        return found[0] if q.ndim == 0 else np.stack(found, axis=-1)

    def rvs(self, size: int = 1, random_state=None) -> np.ndarray:
        """(n, size) values: of every row as many draws at random, and a value of each."""
        rng = np.random.default_rng(random_state)
        n_draws, n = self.loc.shape
        which, rows = rng.integers(n_draws, size=(n, size)), np.arange(n)[:, None]
        if self.df is None:
            noise = rng.standard_normal((n, size))
        else:
            noise = rng.standard_t(self.df[which, 0])
        return self.loc[which, rows] + self.scale[which, rows] * noise

    def _quantile(self, q: float) -> np.ndarray:
        """Newton's method within a bracket, which is halved where a step leaves it."""
        ends = self.loc + self.scale * self._law.ppf(q)
        low, high = ends.min(axis=0), ends.max(axis=0)
        x = ends.mean(axis=0)
        for _ in range(STEPS):
            z = (x - self.loc) / self.scale
            off = self._law.cdf(z).mean(axis=0) - q
            low, high = np.where(off < 0, x, low), np.where(off > 0, x, high)
            if (np.abs(off) < CLOSE).all() or np.array_equal(low, high):
                break
            density = (self._law.pdf(z) / self.scale).mean(axis=0)
            step = x - off / np.maximum(density, np.finfo(float).tiny)
            x = np.where((step > low) & (step < high), step, 0.5 * (low + high))
        return x
