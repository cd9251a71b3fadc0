"""`BARTRegressor`."""

from collections.abc import Callable

import numpy as np
import pymc as pm
from scipy import stats
from scipy.special import logsumexp
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from pymc_trees.arguments import check_choice, check_number, check_positive
from pymc_trees.estimators.base import BARTEstimator
from pymc_trees.estimators.inputs import checked_X, checked_y, taken, weights_of
from pymc_trees.estimators.models import NOISES, least_noise, regression, residual_sd
from pymc_trees.posterior.exporting.expressions import Response
from pymc_trees.predictors.predictor import Predictor

# ------- The posterior predictive distribution of rows: a mixture over the draws, equally weighted


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
    >>> from pymc_trees.estimators.regressor import Mixture
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
        """(n,) log densities at y, one of each row."""
        at = self._law.logpdf((np.asarray(y) - self.loc) / self.scale) - np.log(self.scale)
        return logsumexp(at, axis=0) - np.log(len(self.loc))

    def cdf(self, y) -> np.ndarray:
        """(n,) probabilities below y."""
        return self._law.cdf((np.asarray(y) - self.loc) / self.scale).mean(axis=0)

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


# --------------------------------------------------------------------------------- `BARTRegressor`


class BARTRegressor(RegressorMixin, BARTEstimator):
    """Bayesian additive regression trees with noise that depends on the inputs.

    `fit` builds an ordinary PyMC model, kept as ``model_``, and samples it with `pymc.sample`; the
    draws are ``idata_``. By default the log of the noise is a forest too, so intervals are wide
    where the data scatter and narrow elsewhere:

        y_i ~ Normal(f(x_i), exp(log_sigma(x_i)) / sqrt(w_i)),
        f ~ BART(m trees),  log_sigma ~ BART(scale_trees trees).

    Parameters
    ----------
    m : int, default 200
        Trees of f (Chipman 2010).
    noise : {"forest", "constant", "student"}, default "forest"
        "forest": as above. "constant": Normal with one ``sigma``. "student": StudentT with one
        ``sigma`` and ``nu`` degrees of freedom, for outliers.
    scale_trees : int, default 50
        Trees of log_sigma.
    k : float, default 2
        The range of y spans 2 k prior standard deviations of f (Chipman 2010, section 2.2.3): a
        larger k makes f flatter.
    alpha, beta : float, optional
        A node at depth d splits with probability ``alpha * (1 + d)**-beta``. Default: 0.95 and 2,
        and beta = 1 from 5,000 rows on, as for `BART`.
    split_prior : array or dict of column and weight, optional
        Weights of the columns of f, as for `BART`; 0 excludes a column from both forests.
    split_rules : optional
        How columns are split, as for `Data`.
    n_cuts : int, optional
        Restrict cuts to a grid of at most this many quantiles per column. Default: no grid.
    draws, tune, chains : int, optional
        For each chain, as for `pymc.sample`. Default: four chains of 1,000 draws after 1,000 of
        tuning; where rows times trees exceed 2,000,000 fewer in proportion, down to 200, each of
        five sweeps. The attribute "chains_by_size" of ``idata_`` has the numbers.
    until : dict, optional
        What chains are to reach, instead of a length: arguments of `sample_until`, such as
        ``{"ess": 400, "max_time": "10min"}``. ``draws`` then come before the first judgement.
    cores : int, optional
        Number of processes. Default: that of `pymc.sample`, half the number of processors.
    random_state : int, RandomState, Generator or None
        Seed. Fits with the same integer are identical.
    progressbar : bool, default True
        Whether a bar shows how far fitting and predictions are; in a pipe, a line a minute does.

    Attributes
    ----------
    model_ : pymc.Model
        With ``f``, ``y`` and the parameters of the noise.
    idata_ : xarray.DataTree
        Result of `pymc.sample`. Functions at the training rows are recorded where their draws take
        at most 1 GB; otherwise every answer computes them from the trees.
    n_features_in_ : int
        Features.
    feature_names_in_ : (p,) array
        Names of the features, if X had any.

    Raises
    ------
    ValueError
        For settings out of range, a y that is not numeric, and inputs that `Data` refuses.

    Warns
    -----
    ConvergenceWarning
        When R-hat of f at training rows is above 1.05, with the remedy and whether all chains
        together can be used.

    Notes
    -----
    X may be an array or a pandas or polars frame; text, categories and missing cells are allowed,
    as in `Data`. A constant sigma is half-normal with the residual standard deviation of a linear
    fit as its scale. At a row, log_sigma has that as its upper decile; its prior sd,
    ``log_sigma_sd``, is half-normal with scale 1, so homoscedastic noise costs little. Where y
    is recorded in coarse steps (whole numbers, say) the variance is exp(log_sigma)**2 plus that of
    the rounding, the square of a step over 12.

    References
    ----------
    Chipman, George and McCulloch (2010). BART: Bayesian additive regression trees. Annals of
    Applied Statistics 4(1).
    Pratola, Chipman, George and McCulloch (2020). Heteroscedastic BART via multiplicative
    regression trees. Journal of Computational and Graphical Statistics 29(2).

    Examples
    --------
    >>> import numpy as np, pymc_trees as pmt
    >>> rng = np.random.default_rng(1)
    >>> X = rng.random((60, 2))
    >>> y = 4 * X[:, 0] + (0.1 + X[:, 1]) * rng.normal(size=60)
    >>> regressor = pmt.BARTRegressor(m=20, draws=50, tune=50, chains=1, random_state=1)
    >>> mean, sd = regressor.fit(X, y).predict(X[:3], return_std=True)
    >>> mean.shape, regressor.predict(X[:3], quantiles=[0.05, 0.95])[1].shape
    ((3,), (3, 2))
    """

    def __init__(
        self,
        m=200,
        *,
        noise="forest",
        scale_trees=50,
        k=2.0,
        alpha=0.95,
        beta=None,
        split_prior=None,
        split_rules=None,
        n_cuts=None,
        draws=None,
        tune=None,
        chains=None,
        until=None,
        cores=None,
        random_state=None,
        progressbar=True,
    ):
        self.m = m
        self.noise = noise
        self.scale_trees = scale_trees
        self.k = k
        self.alpha = alpha
        self.beta = beta
        self.split_prior = split_prior
        self.split_rules = split_rules
        self.n_cuts = n_cuts
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.until = until
        self.cores = cores
        self.random_state = random_state
        self.progressbar = progressbar

    def fit(self, X, y, sample_weight=None):
        """Build the model and sample it.

        Parameters
        ----------
        X : (n, p) array or frame
            Inputs; NaN, None and NA are missing cells.
        y : (n,) array
            Numbers.
        sample_weight : (n,) array, optional
            The noise of a row is divided by the root of its weight; rows of weight 0 are left out.

        Returns
        -------
        BARTRegressor
            Itself.
        """
        X = checked_X(self, X, reset=True)
        y = checked_y(y)
        check_consistent_length(X, y)
        weights = weights_of(sample_weight, len(y))
        if weights is not None and not weights.all():
            X, y, weights = taken(X, weights > 0), y[weights > 0], weights[weights > 0]
        return self._sample(X, y=y, weights=weights)

    def predict(self, X, return_std=False, quantiles=None, *, draws=None, n_jobs=1):
        """Posterior predictive mean at rows, and optionally standard deviation and quantiles.

        Parameters
        ----------
        X : (n, p) array or frame
            Rows.
        return_std : bool, default False
            Whether to also return the standard deviation of a new y, from the noise and the
            uncertainty of f together.
        quantiles : sequence of float, optional
            Probabilities of the quantiles of a new y that are also returned.
        draws : int, optional
            How many draws are used, over all chains and evenly spaced. Default: all.
        n_jobs : int, default 1
            Threads; -1 for as many as there are processors.

        Returns
        -------
        mean : (n,) array
            In the units of y.
        std : (n,) array
            With ``return_std``.
        quantiles : (n, Q) array
            With ``quantiles``; exact for the mixture over draws.
        """
        summaries: list[Callable[[Mixture], np.ndarray]] = [Mixture.mean]
        summaries += [Mixture.std] * bool(return_std)
        if quantiles is not None:
            summaries.append(lambda law: law.ppf(quantiles))
        parts = [[summary(law) for summary in summaries] for law in self._laws(X, draws, n_jobs)]
        results = [np.concatenate(blocks) for blocks in zip(*parts, strict=True)]
        return results[0] if len(results) == 1 else tuple(results)

    def predict_dist(self, X) -> Mixture:
        """Posterior predictive distribution at rows: a mixture over all draws.

        Parameters
        ----------
        X : (n, p) array or frame
            Rows.

        Returns
        -------
        Mixture
            With ``mean()``, ``std()``, ``logpdf(y)``, ``cdf(y)``, ``ppf(q)`` and ``rvs(size)``,
            each for all rows. It holds draws times n numbers twice.
        """
        laws = list(self._laws(X))
        loc = np.concatenate([law.loc for law in laws], axis=1)
        return Mixture(loc, np.concatenate([law.scale for law in laws], axis=1), laws[0].df)

    def sample_y(self, X, n_samples=1, random_state=None):
        """Draws of y from the posterior predictive distribution.

        Parameters
        ----------
        X : (n, p) array or frame
            Rows.
        n_samples : int, default 1
            Of each row.
        random_state : int, Generator or None
            Seed.

        Returns
        -------
        (n, n_samples) array
            In the units of y.
        """
        size = check_number("n_samples", n_samples, 1)
        rng = np.random.default_rng(random_state)
        return np.concatenate([law.rvs(size, rng) for law in self._laws(X)])

    def _laws(self, X, draws=None, n_jobs=1):
        """The predictive law of some rows at a time."""
        check_is_fitted(self, "idata_")
        made = self._predicting(draws)
        by_row = self.noise == "forest"
        least = self._least_noise() if by_row else 0.0
        df = None
        for values in self._at(made, X, ["f", "log_sigma"][: 1 + by_row], n_jobs):
            scale = np.hypot(np.exp(values[1]), least) if by_row else _column(made, "sigma")
            if self.noise == "student":
                df = _column(made, "nu")
            yield Mixture(values[0], scale, df)

    def _least_noise(self) -> float:
        """That of the rounding of y."""
        if self._training is None:
            return float(self._known["least_noise"])
        table, rows = self._training
        return least_noise(rows["y"], residual_sd(table, rows["y"]))

    def _known_of_rows(self):
        return {"least_noise": float(self._least_noise())}

    def _law(self, model):
        f = model["f"]
        if self.noise == "forest":
            least = self._least_noise()
            own = pm.math.exp(model["log_sigma"])
            sigma = pm.math.sqrt(own**2 + least**2) if least > 0.0 else own
        else:
            sigma = model["sigma"]
        if self.noise == "student":
            return Response("y", "studentt", [model["nu"], f, sigma], 1)
        return Response("y", "normal", [f, sigma], 1)

    def _declare(self, table, rows):
        check_choice("noise", self.noise, NOISES)
        trees = check_number("scale_trees", self.scale_trees, 1)
        noise = (self.noise, trees, check_positive("k", self.k))
        return regression(
            table, rows["y"], rows.get("weights"), *noise, self._tree_settings(len(table))
        )


def _column(made: Predictor, name: str) -> np.ndarray:
    """(draws, 1) values of a parameter."""
    return made.parameters[name].reshape(-1, 1)
