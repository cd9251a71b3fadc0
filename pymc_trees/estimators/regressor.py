"""`BARTRegressor`."""

from collections.abc import Callable

import numpy as np
import pymc as pm
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _num_samples, check_consistent_length, check_is_fitted

from pymc_trees.arguments import check_choice, check_number, check_positive
from pymc_trees.distributions.data.table import encode
from pymc_trees.distributions.tree_variable import evenly_spaced
from pymc_trees.estimators.base import LOOKED_AT, BARTEstimator
from pymc_trees.estimators.density import CellLaws, CellMixture
from pymc_trees.estimators.inputs import checked_X, checked_y, taken, weights_of
from pymc_trees.estimators.mixture import Mixture
from pymc_trees.estimators.models import (
    NOISES,
    density,
    least_noise,
    regression,
    residual_sd,
)
from pymc_trees.posterior.exporting.expressions import Response
from pymc_trees.predictors.predictor import Predictor

TREES, K = 200, 2.0
"""Trees of f, and how many of its sds half of the range of y spans."""
DENSITY_TREES, DENSITY_K, DENSITY_BETA = 50, 1.0, 0.5
"""The same of a density, and how fast the probability of a split falls with depth."""


class BARTRegressor(RegressorMixin, BARTEstimator):
    """Bayesian additive regression trees with noise that depends on the inputs.

    `fit` builds an ordinary PyMC model, kept as ``model_``, and samples it with `pymc.sample`; the
    draws are ``idata_``. By default the log of the noise is a forest too, so intervals are wide
    where the data scatter and narrow elsewhere:

        y_i ~ Normal(f(x_i), exp(log_sigma(x_i)) / sqrt(w_i)),
        f ~ BART(m trees),  log_sigma ~ BART(scale_trees trees).

    Parameters
    ----------
    m : int, optional
        Trees of f. Default: 200 (Chipman 2010), and 50 of a density.
    noise : {"forest", "constant", "student", "density"}, default "forest"
        "forest": as above. "constant": Normal with one ``sigma``. "student": StudentT with one
        ``sigma`` and ``nu`` degrees of freedom, for outliers. "density": any distribution that
        changes with x, such as one with two modes (see Notes).
    scale_trees : int, default 50
        Trees of log_sigma.
    k : float, optional
        The range of y spans 2 k prior standard deviations of f (Chipman 2010, section 2.2.3): a
        larger k makes f flatter. Default: 2, and 1 of a density.
    alpha, beta : float, optional
        A node at depth d splits with probability ``alpha * (1 + d)**-beta``. Default: 0.95 and 2,
        and beta = 1 from 5,000 rows on, as for `BART`; beta = 0.5 of a density.
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
        together can be used. Of a density, R-hat of ``f_quantiles``, and only where they cannot.

    Notes
    -----
    X may be an array or a pandas or polars frame; text, categories and missing cells are allowed,
    as in `Data`. A constant sigma is half-normal with the residual standard deviation of a linear
    fit as its scale. At a row, log_sigma has that as its upper decile; its prior sd,
    ``log_sigma_sd``, is half-normal with scale 1, so homoscedastic noise costs little. Where y
    is recorded in coarse steps (whole numbers, say) the variance is exp(log_sigma)**2 plus that of
    the rounding, the square of a step over 12.

    With ``noise="density"`` both forests have a latent column z in addition to those of X,

        y_i ~ Normal(f(x_i, z_i), exp(log_sigma(x_i, z_i))),  z_i ~ Normal(g(x_i), 1),

    f increases in z, and g is a forest of 4 m trees with beta = 1. The predictive distribution is
    an exact mixture over draws and over the intervals of z between cuts. Chains often differ in z,
    f and g and agree in the distribution of y, so that several are part of the method;
    ``f_quantiles`` are the quantiles of f(x, z) given x at up to 100 training rows.

    References
    ----------
    Chipman, George and McCulloch (2010). BART: Bayesian additive regression trees. Annals of
    Applied Statistics 4(1).
    Gneiting and Raftery (2007). Strictly proper scoring rules, prediction, and estimation. Journal
    of the American Statistical Association 102(477).
    Li, Linero and Murray (2023). Adaptive conditional distribution estimation with Bayesian
    decision tree ensembles. Journal of the American Statistical Association 118(543).
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
        m=None,
        *,
        noise="forest",
        scale_trees=50,
        k=None,
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
            With ``noise="density"`` only weights of 0 and 1.

        Returns
        -------
        BARTRegressor
            Itself.
        """
        X = self._begin(X)
        y = checked_y(y)
        check_consistent_length(X, y)
        weights = weights_of(sample_weight, len(y))
        if weights is not None and not weights.all():
            X, y, weights = taken(X, weights > 0), y[weights > 0], weights[weights > 0]
        if weights is not None and self._is_density:
            if not (weights == 1.0).all():
                raise ValueError(
                    "sample_weight: noise='density' takes weights of 0 and 1 only, since the mean "
                    "of several observations does not have the density of one. Use noise='forest', "
                    "or give repeated rows."
                )
            weights = None
        if self._is_density and len(y) < 2:
            raise ValueError(
                "noise='density' needs two rows or more, but X has 1 sample. Use noise='constant'."
            )
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
        summaries: list[Callable] = [lambda law: law.mean()]
        summaries += [lambda law: law.std()] * bool(return_std)
        if quantiles is not None:
            summaries.append(lambda law: law.ppf(quantiles))
        parts = [[summary(law) for summary in summaries] for law in self._laws(X, draws, n_jobs)]
        results = [np.concatenate(blocks) for blocks in zip(*parts, strict=True)]
        return results[0] if len(results) == 1 else tuple(results)

    def log_density(self, X, y, *, draws=None, n_jobs=1):
        """Log of the posterior predictive density at y.

        Parameters
        ----------
        X : (n, p) array or frame
            Rows.
        y : (n,) or (n, Q) array
            One number of each row, or Q.
        draws, n_jobs
            As for `predict`.

        Returns
        -------
        (n,) or (n, Q) array
            Its mean over observed y is the log score (Gneiting and Raftery 2007): larger is better.

        Raises
        ------
        ValueError
            For a y of another shape.
        """
        y, n = np.asarray(y, dtype=np.float64), _num_samples(X)
        if y.ndim not in (1, 2) or len(y) != n:
            raise ValueError(f"y has shape {y.shape}: must be ({n},) or ({n}, Q), as X has rows.")
        found, start = [], 0
        for law in self._laws(X, draws, n_jobs):
            stop = start + len(law.mean())
            found.append(law.logpdf(y[start:stop]))
            start = stop
        return np.concatenate(found)

    def predict_dist(self, X) -> Mixture | CellMixture:
        """Posterior predictive distribution at rows: a mixture over all draws.

        Parameters
        ----------
        X : (n, p) array or frame
            Rows.

        Returns
        -------
        Mixture
            With ``mean()``, ``std()``, ``logpdf(y)``, ``cdf(y)``, ``ppf(q)`` and ``rvs(size)``,
            each for all rows. It holds draws times n numbers twice; of a density, three numbers
            for each draw, row and interval of z.
        """
        laws = list(self._laws(X))
        if self._is_density:
            return CellMixture.joined(laws)
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
        if self._is_density:
            X = encode(checked_X(self, X, reset=False), self._training_rows()[0].schema)
            yield from self._cells().blocks(X, draws, n_jobs, self.progressbar)
            return
        made = self._predicting(draws)
        by_row = self._of_fit("noise") == "forest"
        least = self._least_noise() if by_row else 0.0
        df = None
        for values in self._at(made, X, ["f", "log_sigma"][: 1 + by_row], n_jobs):
            scale = np.hypot(np.exp(values[1]), least) if by_row else _column(made, "sigma")
            if self._of_fit("noise") == "student":
                df = _column(made, "nu")
            yield Mixture(values[0], scale, df)

    @property
    def _is_density(self) -> bool:
        return self._of_fit("noise") == "density"

    @property
    def _pool_is_enough(self) -> bool:
        return self._is_density

    @property
    def _plotted(self) -> str | None:
        return None if self._is_density else super()._plotted

    def _watched(self, which):
        if self._is_density:
            return self.idata_["posterior"]["f_quantiles"]
        return super()._watched(which)

    @property
    def _judged(self) -> list[str] | None:
        return ["f_quantiles"] if self._is_density else super()._judged

    def _cells(self) -> CellLaws:
        """What computes laws of a density, made once."""
        if "cells" not in self._kept:
            self._kept["cells"] = CellLaws(self.idata_, self.model_, self._least_noise())
        return self._kept["cells"]

    @property
    def _predicts_alone(self) -> bool:
        return not self._is_density

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
        if self._of_fit("noise") in ("forest", "density"):
            least = self._least_noise()
            own = pm.math.exp(model["log_sigma"])
            sigma = pm.math.sqrt(own**2 + least**2) if least > 0.0 else own
        else:
            sigma = model["sigma"]
        if self._of_fit("noise") == "student":
            return Response("y", "studentt", [model["nu"], f, sigma], 1)
        return Response("y", "normal", [f, sigma], 1)

    @property
    def _usual(self):
        return {"m": DENSITY_TREES, "beta": DENSITY_BETA} if self._is_density else {"m": TREES}

    def _declare(self, table, rows):
        check_choice("noise", self.noise, NOISES)
        trees = check_number("scale_trees", self.scale_trees, 1)
        usual = DENSITY_K if self._is_density else K
        k = usual if self.k is None else check_positive("k", self.k)
        settings = self._tree_settings(len(table))
        if self._is_density:
            watched = evenly_spaced(len(table.values), LOOKED_AT)
            return density(table, rows["y"], trees, k, settings, watched)
        return regression(table, rows["y"], rows.get("weights"), self.noise, trees, k, settings)


def _column(made: Predictor, name: str) -> np.ndarray:
    """(draws, 1) values of a parameter."""
    return made.parameters[name].reshape(-1, 1)
