"""``noise="density"``: the predictive law of rows, a mixture over draws and cells of a column.

    y ~ Normal(f(x, z), s(x, z)),    z ~ Normal(g(x), 1)

f and s are constant where z lies between two neighbouring cuts. So the law of y at a row, given the
trees, is a mixture of as many Normals, whose weights are the masses of N(g(x), 1) between the cuts,
and the predictive law is that of all draws, with equal weights. Nothing is simulated.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from typing import NamedTuple

import numpy as np
import pymc as pm
from scipy.special import ndtri

from pymc_trees.arguments import check_number
from pymc_trees.core.columns.cells import MISSING
from pymc_trees.core.samplers.latent_column import CellTrees, cell_trees, outputs_by_cell
from pymc_trees.core.value import mixtures
from pymc_trees.core.value.fields import sizes
from pymc_trees.distributions.forest_inputs import declared
from pymc_trees.posterior.draws import StoredDraws, checked_draws, model_of, thinned
from pymc_trees.progress import track

CLOSE = 1e-10
"""How near the probability of a quantile is to what was asked."""
HELD = 4_000_000
"""Components that are made at once."""
ROUNDING = 1e-12
"""Share of the largest output below which two outputs of a row are the same."""
NOWHERE = -2
"""Number of a column that no tree splits on."""


class CellMixture:
    """Mixtures of Normals at n rows, each with components of its own.

    Parameters
    ----------
    start : (n + 1,) int array
        Row i has the components ``start[i]`` to ``start[i + 1]``.
    weight, loc, scale : (K,) arrays
        Of all components; the weights of a row add up to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_trees.estimators.density import CellMixture
    >>> two = CellMixture(np.array([0, 2]), np.full(2, 0.5), np.array([-1.0, 1.0]), np.ones(2))
    >>> float(two.mean()[0]), round(float(two.std()[0]), 3), round(float(two.cdf(0.0)[0]), 6)
    (0.0, 1.414, 0.5)
    """

    def __init__(self, start, weight, loc, scale):
        self.start, self.weight, self.loc, self.scale = start, weight, loc, scale

    @classmethod
    def joined(cls, laws: "list[CellMixture]") -> "CellMixture":
        """The rows of several, one after another."""
        counts = np.concatenate([np.diff(law.start) for law in laws])
        parts = (
            np.concatenate([getattr(law, name) for law in laws])
            for name in ("weight", "loc", "scale")
        )
        return cls(np.concatenate([[0], np.cumsum(counts)]), *parts)

    @property
    def _parts(self):
        return self.start, self.weight, self.loc, self.scale

    def _moments(self) -> np.ndarray:
        out = np.empty((len(self.start) - 1, 2))
        mixtures.moments(*self._parts, out)
        return out

    def mean(self) -> np.ndarray:
        """(n,) means."""
        return self._moments()[:, 0]

    def std(self) -> np.ndarray:
        """(n,) standard deviations."""
        return self._moments()[:, 1]

    def logpdf(self, y) -> np.ndarray:
        """Log densities at y: (n,) for one number a row, (n, Q) for an array of that shape."""
        return self._at(y, mixtures.log_densities)

    def cdf(self, y) -> np.ndarray:
        """Probabilities below y, of the same shapes."""
        return self._at(y, mixtures.probabilities)

    def _at(self, y, kernel) -> np.ndarray:
        n, y = len(self.start) - 1, np.asarray(y, dtype=np.float64)
        y = np.broadcast_to(y, (n, *y.shape[1:]))
        out = np.empty((n, y.size // max(n, 1)))
        kernel(*self._parts, np.ascontiguousarray(y.reshape(out.shape)), out)
        return out.reshape(y.shape)

    def ppf(self, q) -> np.ndarray:
        """Quantiles: (n,) for a number q, (n, Q) for a sequence."""
        q = np.asarray(q, dtype=np.float64)
        if q.size == 0 or not ((q > 0) & (q < 1)).all():
            raise ValueError(f"quantiles={q.tolist()}: must lie strictly between 0 and 1.")
        found = np.empty((len(self.start) - 1, q.size))
        mixtures.quantiles(*self._parts, q.ravel(), ndtri(q.ravel()), CLOSE, found)
        return found[:, 0] if q.ndim == 0 else found

    def rvs(self, size: int = 1, random_state=None) -> np.ndarray:
        """(n, size) values at random."""
        rng = np.random.default_rng(random_state)
        drawn = np.empty((len(self.start) - 1, size))
        for i, (first, last) in enumerate(zip(self.start[:-1], self.start[1:], strict=True)):
            below = np.cumsum(self.weight[first:last])
            which = np.searchsorted(below, rng.random(size) * below[-1], side="right")
            which = first + np.minimum(which, len(below) - 1)
            drawn[i] = rng.normal(self.loc[which], self.scale[which])
        return drawn


class _Forest(NamedTuple):
    """Draws of a forest, and what its kernels take."""

    draws: StoredDraws
    X_train: np.ndarray
    sizes: tuple


class CellLaws:
    """The predictive law of rows under draws of a density model.

    Parameters
    ----------
    idata : xarray.DataTree
        Draws.
    model : pymc.Model
        As `estimators.models.density` builds it.
    least : float
        Sd of the rounding of y.
    """

    def __init__(self, idata, model: pm.Model, least: float):
        model = model_of(model)
        draws = checked_draws(idata, model)
        self.least = least
        self.f, self.scale, self.index = (
            _forest(model, draws, f"{name}_forest") for name in ("f", "log_sigma", "g")
        )
        cuts = declared(model["f_forest"]).cuts
        assert cuts is not None
        self.cuts = np.ascontiguousarray(cuts[-1])
        self.edges = np.concatenate([[-np.inf], self.cuts, [np.inf]])
        self.shape: tuple[int, int] = (self.f.draws.shape[0], self.f.draws.shape[1])

    def chosen(self, draws: int | None) -> list[tuple[int, int]]:
        """Chain and draw of those that are taken."""
        each = thinned(*self.shape, draws)
        return [(chain, int(draw)) for chain in range(self.shape[0]) for draw in each]

    def at(self, X: np.ndarray, draws: list[tuple[int, int]]) -> CellMixture:
        """The law of encoded rows."""
        n, n_cells = len(X), len(self.cuts) + 1
        rows, wide = np.arange(n), np.column_stack([X, np.zeros(n)])
        outputs, centre = np.empty((n_cells, n, 2)), np.empty((1, n, 1))
        points, anywhere = np.append(self.cuts, np.inf), np.array([np.inf])
        used = np.zeros(n, dtype=np.int64)
        missing = bool((X == MISSING).any())

        def trees(forest: _Forest, place, *given) -> CellTrees:
            made = cell_trees(_value(forest, place), *given)
            # where training rows had no missing cells, nodes send them to sides of their own
            return made._replace(mixed=True) if missing else made

        weight, mean, sd = (np.empty((n, n_cells * len(draws))) for _ in range(3))
        for place in draws:
            for k, forest in enumerate((self.f, self.scale)):
                given = wide, forest.X_train, forest.sizes, X.shape[1], points
                outputs_by_cell(trees(forest, place, *given), wide, rows, k, outputs)
            given = X, self.index.X_train, self.index.sizes, NOWHERE, anywhere
            outputs_by_cell(trees(self.index, place, *given), X, rows, 0, centre)
            tolerance = ROUNDING * np.abs(outputs).max(axis=(0, 1), initial=0.0)
            settings = self.edges, 1.0 / len(draws), self.least, tolerance
            mixtures.add_components(outputs, centre[0, :, 0], *settings, used, weight, mean, sd)
        taken = np.arange(weight.shape[1]) < used[:, None]
        start = np.concatenate([[0], np.cumsum(used)])
        return CellMixture(start, weight[taken], mean[taken], sd[taken])

    def blocks(
        self, X: np.ndarray, draws: int | None, n_jobs: int, progressbar: bool
    ) -> Iterator[CellMixture]:
        """The laws of some rows at a time."""
        chosen = self.chosen(draws)
        jobs = (cpu_count() or 1) if n_jobs == -1 else check_number("n_jobs", n_jobs, 1)
        width = max(1, HELD // (len(chosen) * (len(self.cuts) + 1) * jobs))
        starts = range(0, len(X), width)

        def work(start):
            return self.at(np.ascontiguousarray(X[start : start + width]), chosen)

        if jobs == 1:
            yield from track(map(work, starts), "rows", len(starts), progressbar)
            return
        with ThreadPoolExecutor(jobs) as pool:
            yield from track(pool.map(work, starts), "rows", len(starts), progressbar)


def _forest(model: pm.Model, draws, name: str) -> _Forest:
    forest = model[name]
    return _Forest(draws[name], declared(forest).X, sizes(forest.owner.op.layout))


def _value(forest: _Forest, place: tuple[int, int]) -> np.ndarray:
    return np.array(forest.draws[place], order="C")
