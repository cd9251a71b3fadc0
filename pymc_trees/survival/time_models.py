"""`accelerated_failure_time`: a PyMC model of log times, made of public functions only."""

from typing import Any

import numpy as np
import pymc as pm
from scipy import stats

from pymc_trees.arguments import check_choice, check_number, check_positive
from pymc_trees.distributions.bart import BART
from pymc_trees.distributions.data.variables import register_data, training_inputs
from pymc_trees.distributions.leaves.normal import NormalLeaf
from pymc_trees.survival.outcomes import Outcome, check_outcome

LAWS = {
    "lognormal": lambda f, sigma: pm.LogNormal.dist(f, sigma),
    "weibull": lambda f, sigma: pm.Weibull.dist(1.0 / sigma, pm.math.exp(f)),
}
"""Laws of T with log T = f + sigma times noise."""
LEAST = 0.01
"""Spread of log times below which they say nothing of the scale."""


def accelerated_failure_time(
    X: Any,
    time: Any,
    event: Any,
    *,
    distribution: str = "lognormal",
    m: int = 50,
    k: float = 2.0,
    split_rules=None,
    **settings,
) -> pm.Model:
    """Model of log times about a forest, censored from the right.

    log T = f(x) + sigma * noise: covariates accelerate or slow down time, which stretches the whole
    survival curve. The noise is Normal, or that of the log of a Weibull time, for which the hazards
    are also proportional.

    Parameters
    ----------
    X : (n, p) array or frame
        Covariates; text, categories and missing cells are allowed.
    time : (n,) array
        Time of the event, or of the last observation of a subject without one.
    event : (n,) array
        1 for an event, 0 for a censored time.
    distribution : {"lognormal", "weibull"}, default "lognormal"
        Of the times.
    m : int, default 50
        Trees.
    k : float, default 2
        Four sds of the log times span 2 k prior sds of f (Chipman 2010).
    split_rules : optional
        Rules for the columns of X, as for `pymc_trees.Data`.
    **settings
        For `pymc_trees.BART`: ``alpha``, ``beta``, ``split_prior``, ``n_cuts``, ...

    Returns
    -------
    pymc.Model
        With the data ``X`` and ``limit``, where each time is censored; ``f``, ``sigma``, and the
        observed ``time``.

    Raises
    ------
    ValueError
        Times that are not positive, events other than 0 and 1, settings out of range.

    Notes
    -----
    Mean and sd of the log times are those of a log-normal distribution fitted to all rows, censored
    ones included, by maximum likelihood; sigma is half-normal with that sd.

    References
    ----------
    Chipman, George and McCulloch (2010). BART: Bayesian additive regression trees. Annals of
    Applied Statistics 4(1).

    Examples
    --------
    >>> import numpy as np, pymc as pm
    >>> from pymc_trees import survival
    >>> rng = np.random.default_rng(1)
    >>> X = rng.random((60, 2))
    >>> time = rng.exponential(1 + X[:, 0])
    >>> model = survival.accelerated_failure_time(X, np.minimum(time, 2), time < 2, m=10)
    >>> idata = pm.sample(5, tune=5, chains=1, model=model, random_seed=1, progressbar=False,
    ...                   compute_convergence_checks=False)
    >>> S = survival.survival_function(idata, model, times=[0.5, 1.0], progressbar=False)
    >>> dict(S["survival"].sizes)
    {'chain': 1, 'draw': 5, 'row': 60, 'time': 2}
    """
    law = LAWS[check_choice("distribution", distribution, LAWS)]
    inputs = training_inputs(X, split_rules)
    outcome = check_outcome(time, event, len(inputs.values))
    centre, spread = _log_times(outcome)
    sd = 2.0 * spread / (check_positive("k", k) * np.sqrt(check_number("m", m, 1)))
    with pm.Model() as model:
        data = register_data("X", *inputs)
        limit = pm.Data("limit", np.where(outcome.event, np.inf, outcome.time))
        f = BART("f", data, m=m, leaf=NormalLeaf(centre / m, sd), **settings)
        times = law(f, pm.HalfNormal("sigma", spread))
        observed = {"observed": outcome.time, "shape": f.shape}
        pm.Censored("time", times, lower=None, upper=limit, **observed)
    return model


def _log_times(outcome: Outcome) -> tuple[float, float]:
    """Mean and sd of the log times of all rows, censored ones included."""
    logs = stats.CensoredData.right_censored(np.log(outcome.time), ~outcome.event)
    centre, spread = stats.norm.fit(logs)
    return float(centre), float(spread) if spread > LEAST else 1.0
