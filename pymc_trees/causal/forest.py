"""`BayesianCausalForest`, and the effects of the treatment in a fitted one, draw by draw."""

from typing import Any

import numpy as np
import xarray as xr

from pymc_trees.arguments import check_choice, check_number
from pymc_trees.causal.models import (
    ARMS,
    EFFECT,
    PROPENSITY,
    TREATMENT,
    Rows,
    Treatment,
    check_group,
    check_order,
    check_outcome,
    check_propensity,
    check_treatment,
    forest_of_each_arm,
    is_binary,
    one_forest,
    two_forests,
)
from pymc_trees.causal.propensities import fitted_propensity, warn_of_one_arm
from pymc_trees.distributions.data.table import encode
from pymc_trees.estimators.base import BARTEstimator
from pymc_trees.estimators.classifier import BARTClassifier
from pymc_trees.estimators.inputs import checked_X
from pymc_trees.estimators.regressor import BARTRegressor
from pymc_trees.posterior.draws import SAMPLE
from pymc_trees.predictors.columns import column_names

BLOCK = 5_000_000
"""Draws times rows whose effects are averaged at a time."""

# -------------------------------- Effects of the treatment in a fitted causal forest, draw by draw


class Effects(BARTEstimator):
    """Effects at the rows that were fitted, their means, and effects at other rows."""

    forests: str
    treatment: str | None
    _not_recorded = (EFFECT,)
    _inner = {"propensity_model_": (BARTClassifier, BARTRegressor)}

    @property
    def _predicts_alone(self) -> bool:
        return False

    @property
    def propensity_(self) -> np.ndarray:
        """(n,) probabilities of treatment, or expected doses."""
        return self._rows.propensity

    def unit_effects(self, contrast=(0.0, 1.0)) -> xr.DataArray:
        """Effect on the expected outcome of each row that was fitted.

        Parameters
        ----------
        contrast : pair of float, default (0, 1)
            Treatments to compare, the second minus the first.

        Returns
        -------
        xarray.DataArray
            In the units of y, with the dimensions chain, draw and row.
        """
        return self._effects(np.arange(len(self._training_rows()[0].values)), contrast)

    def sate(self, contrast=(0.0, 1.0)) -> xr.DataArray:
        """Average effect in the sample: the mean of `unit_effects` over all rows.

        Parameters
        ----------
        contrast : pair of float, default (0, 1)
            As for `unit_effects`.

        Returns
        -------
        xarray.DataArray
            With the dimensions chain and draw.
        """
        n = len(self._training_rows()[0].values)
        return self._mean_effect(np.arange(n), contrast).rename("sate")

    def satt(self) -> xr.DataArray:
        """Average effect on the treated of the sample: the mean over rows with z = 1.

        Returns
        -------
        xarray.DataArray
            With the dimensions chain and draw.
        """
        treatment = self._rows.treatment
        if not treatment.binary:
            raise ValueError(
                "z is continuous, so there is no treated group: use sate(), which averages over "
                "all rows."
            )
        return self._mean_effect(np.flatnonzero(treatment.arm), (0.0, 1.0)).rename("satt")

    def cate(self, X, contrast=(0.0, 1.0), *, propensity=None) -> xr.DataArray:
        """Effect on the expected outcome at other rows.

        Parameters
        ----------
        X : (n, p) array or frame
            Rows.
        contrast : pair of float, default (0, 1)
            As for `unit_effects`.
        propensity : (n,) array, optional
            Of these rows. Default: by ``propensity_model_``. Two forests need none.

        Returns
        -------
        xarray.DataArray
            With the dimensions chain, draw and row.
        """
        X = checked_X(self, X, reset=False)
        if self._of_fit("forests") == "two":
            return self._scaled(self._f_at("tau", self._function("tau").rows(X)), contrast)
        encoded = encode(X, self._training_rows()[0].schema)
        return self._differences(encoded, self._propensity_at(X, propensity), contrast)

    def _effects(self, which, contrast) -> xr.DataArray:
        """Effects at some of the rows that were fitted."""
        if self._of_fit("forests") == "two":
            effects = self._scaled(self._at_training_rows("tau", which), contrast)
        else:
            inputs, propensity = self._training_rows()[0].values, self._rows.propensity
            effects = self._differences(inputs[which], propensity[which], contrast)
        return effects.assign_coords(row=which)

    def _mean_effect(self, which, contrast) -> xr.DataArray:
        """Mean of the effects at some rows, in blocks of them."""
        sizes = self.idata_["posterior"].sizes
        n_blocks = -(-len(which) * sizes["chain"] * sizes["draw"] // BLOCK)
        parts = np.array_split(which, n_blocks)
        sums = [self._effects(part, contrast).sum("row") for part in parts]
        return xr.concat(sums, "part").sum("part") / len(which)

    def _propensity_at(self, X, propensity) -> np.ndarray:
        """Propensity of other rows, as given or by the model of the rows that were fitted."""
        treatment = self._rows.treatment
        if propensity is not None:
            return check_propensity(propensity, treatment, X.shape[0])
        if not hasattr(self, "propensity_model_"):
            raise ValueError(
                "This forest has no model of the propensity, as where propensity was given to fit: "
                "give the propensity of these rows too."
            )
        model = self.propensity_model_
        return model.predict_proba(X)[:, 1] if treatment.binary else model.predict(X)

    def _scaled(self, tau: xr.DataArray, contrast) -> xr.DataArray:
        """Effects from draws of tau, whose last dimension is that of the rows."""
        first, second = self._contrast(contrast)
        tau_by_row = tau.transpose(*SAMPLE, ...)
        own = str(tau_by_row.dims[-1])
        tau_by_row = tau_by_row.drop_vars(own, errors="ignore").rename({own: "row"})
        tau_by_row = tau_by_row.assign_coords(row=np.arange(tau_by_row.sizes["row"]))
        if self._rows.treatment.binary:
            b = self.idata_["posterior"]["b"]
            arm = str(next(dim for dim in b.dims if dim not in SAMPLE))
            tau_by_row = tau_by_row * (b.isel({arm: 1}, drop=True) - b.isel({arm: 0}, drop=True))
        return ((second - first) * tau_by_row).rename("effect")

    def _differences(self, encoded, propensity, contrast) -> xr.DataArray:
        """Effects as differences of what is expected under two treatments."""
        first, second = self._contrast(contrast)
        joined = np.column_stack([encoded, propensity])
        expected = self._expected_by_arm if self._of_fit("forests") == "arms" else self._expected
        return (expected(joined, second) - expected(joined, first)).rename("effect")

    def _expected(self, joined, z) -> xr.DataArray:
        return self._f_at("f", np.column_stack([joined, np.full(len(joined), z)]))

    def _expected_by_arm(self, joined, z) -> xr.DataArray:
        return self._f_at(f"f_{ARMS[int(z)]}", joined)

    def _contrast(self, contrast) -> tuple[float, float]:
        try:
            first, second = (float(z) for z in contrast)
        except (TypeError, ValueError):
            raise ValueError(f"contrast={contrast!r}: give two treatments to compare.") from None
        if self._rows.treatment.binary and not {first, second} <= {0.0, 1.0}:
            raise ValueError(f"contrast={contrast!r}: z is binary, so give 0 and 1.")
        return first, second

    @property
    def _rows(self) -> Rows:
        """What was fitted, as the models take it."""
        known = self._training_rows()[1]
        binary = self._of_fit("treatment") != "dose" and is_binary(known["z"])
        treatment = Treatment(known["z"], binary)
        groups = getattr(self, "groups_", None)
        return Rows(known["y"], treatment, known["propensity"], known.get("group"), groups)


# -------------------------------------------------------------------------- `BayesianCausalForest`


FORESTS = ("two", "one", "arms")


class BayesianCausalForest(Effects):
    """Effects of a treatment, row by row, with their uncertainty.

    By default a Bayesian causal forest (Hahn, Murray and Carvalho 2020): the prognosis and the
    effect of the treatment each have their own forest and prior,

        y_i ~ Normal(mu(x_i, p_i) + b_{z_i} tau(x_i), sigma),

    with p_i the propensity, the probability of treatment. Without it effects are biased when
    treatment depends on the prognosis. `fit` builds an ordinary PyMC model, ``model_``, and samples
    it; the draws are ``idata_``.

    Parameters
    ----------
    m : int, default 200
        Trees of the prognostic forest mu, of the one forest, or of that of each arm.
    m_effect : int, default 50
        Trees of the effect tau.
    forests : {"two", "one", "arms"}, default "two"
        "one": y_i ~ Normal(f(x_i, p_i, z_i), sigma), and effects are differences of f (Hill 2011).
        "arms": a forest, and a noise, of the rows of each arm, y_i ~ Normal(f_{z_i}(x_i, p_i),
        sigma_{z_i}), for effects that vary as much as the outcomes do.
    treatment : {"binary", "dose"}, optional
        What z is. Default: "binary" where it holds 0 and 1, else "dose"; few whole numbers, which
        may be arms too, are refused unless "dose" is said.
    outcome : {"normal"}, optional
        The law of y: its noise is always normal. To be said where y holds few whole numbers, such
        as 0 and 1, which are refused without it.
    alpha, beta : float, optional
        A node at depth d of mu splits with probability ``alpha * (1 + d)**-beta``. Default: 0.95
        and 2, and beta = 1 from 5,000 rows of a forest on, as for `BART`.
    alpha_effect, beta_effect : float, default 0.25 and 3
        The same for tau: smaller trees, since effects vary less than outcomes (Hahn 2020, section
        5.2).
    split_rules : optional
        How columns are split, as for `pymc_trees.Data`.
    draws, tune, chains : int, optional
        For each chain, as for `pymc.sample`. Default: four chains of 1,000 draws after 1,000 of
        tuning; where rows times trees exceed 2,000,000 fewer in proportion, down to 200, each of
        five sweeps. The attribute "chains_by_size" of ``idata_`` has the numbers.
    until : dict, optional
        What chains are to reach, instead of a length: arguments of `sample_until`, such as
        ``{"ess": 400, "max_time": "10min"}``. Judged are the effects, unless ``of`` says otherwise;
        ``draws`` then come before the first judgement. The model of the propensity takes ``draws``.
    cores : int, optional
        Number of processes. Default: that of `pymc.sample`, half the number of processors.
    random_state : int, RandomState, Generator or None
        Seed.
    progressbar : bool, default True
        Whether a bar shows how far fitting and predictions are; in a pipe, a line a minute does.

    Attributes
    ----------
    model_ : pymc.Model
        With ``prognosis``, ``tau`` and ``b``, or ``f``, or ``f_control`` and ``f_treated``; the
        noise, ``sigma`` or one of each arm; ``intercept`` of groups. ``effect``, that of treatment
        1 instead of 0, or of the second dose of the data ``contrast`` instead of the first, 1
        instead of 0 if not set anew, is a function of X for ``var_name=``. It is computed from the
        other draws, and not recorded.
    idata_ : xarray.DataTree
        Result of `pymc.sample`. Functions at the training rows are recorded where their draws take
        at most 1 GB; otherwise every answer computes them from the trees.
    propensity_ : (n,) array
        As given or estimated.
    propensity_model_ : BARTClassifier or BARTRegressor
        Where it was estimated.
    groups_ : (G,) array
        Names of the groups, where there were some.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : (p,) array
        Names of the features, if X had any.

    Raises
    ------
    ValueError
        For settings out of range, a treatment without variation, few whole numbers as treatment or
        outcome, and rows in another order than those of X. The message says what to do.

    Warns
    -----
    UserWarning
        Of groups in which everybody or nobody was treated.
    ConvergenceWarning
        When R-hat of the effects at training rows is above 1.05, with the remedy.

    Notes
    -----
    An observational study remains one: effects are causal if treatment is as good as random given
    X, and both treatments occur at every x of interest. `overlap` checks the second condition.

    For a continuous treatment with two forests the effect is linear in the dose, tau(x) per unit;
    the propensity is the expected dose, and doses are centred.

    References
    ----------
    Hahn, Murray and Carvalho (2020). Bayesian regression tree models for causal inference:
    regularization, confounding, and heterogeneous effects. Bayesian Analysis 15(3).
    Hill (2011). Bayesian nonparametric modeling for causal inference. Journal of Computational and
    Graphical Statistics 20(1).

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_trees import causal
    >>> rng = np.random.default_rng(1)
    >>> X = rng.random((80, 2))
    >>> z = (rng.random(80) < 0.3 + 0.4 * X[:, 0]).astype(int)
    >>> y = 3 * X[:, 0] + 2 * z + rng.normal(0, 0.3, 80)
    >>> forest = causal.BayesianCausalForest(
    ...     m=20, m_effect=5, draws=50, tune=50, chains=1, random_state=1
    ... )
    >>> effect = forest.fit(X, y, z).satt()
    >>> effect.dims, bool(abs(effect.mean() - 2) < 0.6)
    (('chain', 'draw'), True)
    """

    def __init__(
        self,
        m=200,
        m_effect=50,
        *,
        forests="two",
        treatment=None,
        outcome=None,
        alpha=0.95,
        beta=None,
        alpha_effect=0.25,
        beta_effect=3.0,
        split_rules=None,
        draws=None,
        tune=None,
        chains=None,
        until=None,
        cores=None,
        random_state=None,
        progressbar=True,
    ):
        self.m = m
        self.m_effect = m_effect
        self.forests = forests
        self.treatment = treatment
        self.outcome = outcome
        self.alpha = alpha
        self.beta = beta
        self.alpha_effect = alpha_effect
        self.beta_effect = beta_effect
        self.split_rules = split_rules
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.until = until
        self.cores = cores
        self.random_state = random_state
        self.progressbar = progressbar

    def fit(self, X, y, z, *, propensity=None, group=None, sample_weight=None):
        """Estimate the propensity if it is not given, build the model and sample it.

        Parameters
        ----------
        X : (n, p) array or frame
            Covariates measured before the treatment; text and missing cells are allowed.
        y : (n,) array
            Outcome.
        z : (n,) array
            Treatment: 0 and 1, or doses.
        propensity : (n,) array, optional
            Probability of treatment, or expected dose. Default: estimated from X by
            `causal.propensity`, with the draws, chains and seed of this forest.
        group : (n,) array, optional
            Names of groups, such as schools, each with its own intercept, normal around 0.
        sample_weight : None
            Refused: see the message.

        Returns
        -------
        BayesianCausalForest
            Itself.
        """
        check_choice("forests", self.forests, FORESTS)
        if sample_weight is not None:
            raise ValueError(
                "sample_weight is not taken by causal forests: leave it out. For the effect in a "
                "population average unit_effects() with its weights; for outcomes of unequal "
                "precision write the model in PyMC, with sigma / np.sqrt(sample_weight) as noise."
            )
        check_order(X, y=y, z=z, propensity=propensity, group=group)
        X = self._begin(X)
        taken = [name for name in (PROPENSITY, TREATMENT) if name in (column_names(X) or ())]
        if taken and not (self.forests == "two" and taken == [TREATMENT]):
            raise ValueError(
                f"X has columns named {taken}, names that the model gives to columns of its own: "
                "rename them, and leave the treatment itself out of X."
            )
        n = X.shape[0]
        y = check_outcome(y, n, self.outcome)
        treatment = check_treatment(z, n, self.treatment)
        codes = None
        if group is not None:
            self.groups_, codes = check_group(group, n)
            warn_of_one_arm(treatment, self.groups_, codes)
        if self.forests == "arms" and not treatment.binary:
            raise ValueError('forests="arms" needs a z of 0 and 1: for doses use "two" or "one".')
        if propensity is None:
            names = ("split_rules", "draws", "tune", "chains", "cores", "random_state")
            settings = {name: getattr(self, name) for name in (*names, "progressbar")}
            self.propensity_model_, propensity = fitted_propensity(
                X, treatment, kept="forest.propensity_model_", **settings
            )
        propensity = check_propensity(propensity, treatment, n)
        return self._sample(X, y=y, z=treatment.z, propensity=propensity, group=codes)

    def _watched(self, which) -> xr.DataArray:
        return self._effects(which, (0.0, 1.0))

    @property
    def _plotted(self) -> str:
        return EFFECT

    @property
    def _judged(self) -> list[str]:
        return [EFFECT]

    def _declare(self, table, rows):
        known = self._rows
        settings = {"m": check_number("m", self.m, 1), "alpha": self.alpha, "beta": self.beta}
        if self.forests == "one":
            return one_forest(table, known, settings)
        if self.forests == "arms":
            return forest_of_each_arm(table, known, settings)
        effect = {
            "m": check_number("m_effect", self.m_effect, 1),
            "alpha": self.alpha_effect,
            "beta": self.beta_effect,
        }
        return two_forests(table, known, settings, effect)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
