"""`BayesianCausalForest`."""

from typing import Any

import xarray as xr

from pymc_trees.arguments import check_choice, check_number
from pymc_trees.causal.common_support import warn_of_one_arm
from pymc_trees.causal.effects import Effects
from pymc_trees.causal.models import (
    EFFECT,
    PROPENSITY,
    TREATMENT,
    forest_of_each_arm,
    one_forest,
    two_forests,
)
from pymc_trees.causal.propensities import fitted_propensity
from pymc_trees.causal.treatment import (
    check_group,
    check_order,
    check_outcome,
    check_propensity,
    check_treatment,
)
from pymc_trees.distributions.data.columns import column_names
from pymc_trees.estimators.bart.inputs import checked_X

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
    alpha, beta : float, default 0.95 and 2
        A node at depth d of mu splits with probability ``alpha * (1 + d)**-beta``.
    alpha_effect, beta_effect : float, default 0.25 and 3
        The same for tau: smaller trees, since effects vary less than outcomes (Hahn 2020, section
        5.2).
    split_rules : optional
        How columns are split, as for `pymc_trees.Data`.
    draws, tune, chains : int, default 1000, 1000, 4
        For each chain, as for `pymc.sample`.
    cores : int, optional
        Number of processes. Default: that of `pymc.sample`, half the number of processors.
    random_state : int, RandomState, Generator or None
        Seed.
    progressbar : bool, default False
        Whether `pymc.sample` reports.

    Attributes
    ----------
    model_ : pymc.Model
        With ``prognosis``, ``tau`` and ``b``, or ``f``, or ``f_control`` and ``f_treated``; the
        noise, ``sigma`` or one of each arm; ``intercept`` of groups. ``effect``, that of treatment
        1 instead of 0, or of the second dose of the data ``contrast`` instead of the first, 1
        instead of 0 if not set anew, is a function of X for ``var_name=``. It is computed from the
        other draws, and not recorded.
    idata_ : xarray.DataTree
        Result of `pymc.sample`.
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
        beta=2.0,
        alpha_effect=0.25,
        beta_effect=3.0,
        split_rules=None,
        draws=1000,
        tune=1000,
        chains=4,
        cores=None,
        random_state=None,
        progressbar=False,
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
        X = checked_X(self, X, reset=True)
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
        if group is None:
            self.__dict__.pop("groups_", None)  # of a former fit
        else:
            self.groups_, codes = check_group(group, n)
            warn_of_one_arm(treatment, self.groups_, codes)
        if self.forests == "arms" and not treatment.binary:
            raise ValueError('forests="arms" needs a z of 0 and 1: for doses use "two" or "one".')
        self.__dict__.pop("propensity_model_", None)
        if propensity is None:
            names = ("split_rules", "draws", "tune", "chains", "cores", "random_state")
            settings = {name: getattr(self, name) for name in (*names, "progressbar")}
            self.propensity_model_, propensity = fitted_propensity(X, treatment, **settings)
        propensity = check_propensity(propensity, treatment, n)
        return self._sample(X, y=y, z=treatment.z, propensity=propensity, group=codes)

    def _watched(self) -> xr.DataArray:
        return self.unit_effects()

    @property
    def _plotted(self) -> str:
        return EFFECT

    def _declare(self, inputs, rows):
        known = self._rows
        settings = {"m": check_number("m", self.m, 1), "alpha": self.alpha, "beta": self.beta}
        if self.forests == "one":
            return one_forest(inputs, known, settings)
        if self.forests == "arms":
            return forest_of_each_arm(inputs, known, settings)
        effect = {
            "m": check_number("m_effect", self.m_effect, 1),
            "alpha": self.alpha_effect,
            "beta": self.beta_effect,
        }
        return two_forests(inputs, known, settings, effect)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
