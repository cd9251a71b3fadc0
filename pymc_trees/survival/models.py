"""PyMC models of times: of hazards in the long form, and of log times."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from scipy import stats
from scipy.special import logit, ndtri

from pymc_trees.arguments import check_choice, check_number, check_positive
from pymc_trees.distributions.bart import BART
from pymc_trees.distributions.capacity import default_max_nodes
from pymc_trees.distributions.data.table import Table, read
from pymc_trees.distributions.data.variables import register_data
from pymc_trees.distributions.forest import Forest
from pymc_trees.distributions.leaves.normal import NormalLeaf
from pymc_trees.distributions.ops.evaluation import evaluate
from pymc_trees.survival.long_table import (
    LongRows,
    Outcome,
    check_cause,
    check_outcome,
    long_inputs,
    read_rows,
)


class Link(NamedTuple):
    """Between f and a probability."""

    parameter: Callable[[Variable], dict[str, Variable]]
    """Of `pymc.Bernoulli`, given f."""
    quantile: Callable[[float], float]
    """f that has a probability."""


LINKS = {
    "probit": Link(lambda f: {"p": pm.math.invprobit(f)}, ndtri),
    "logit": Link(lambda f: {"logit_p": f}, logit),
    "cloglog": Link(lambda f: {"p": -pt.expm1(-pt.exp(f))}, lambda p: np.log(-np.log1p(-p))),
}


def discrete_time(
    X: Any,
    time: Any,
    event: Any,
    *,
    times=50,
    entry=None,
    link: str = "probit",
    m: int = 50,
    k: float = 2.0,
    split_rules=None,
    **settings,
) -> pm.Model:
    """Model of hazards at the times of a grid (Sparapani et al. 2016).

    At each time of the grid a subject at risk has its event with probability ``link(f(t, x))``,
    where f is a forest: hazards need not be proportional, and effects may change with time.

    Parameters
    ----------
    X : (n, p) array or frame
        Covariates; text, categories and missing cells are allowed.
    time, event, times, entry
        As for `long_form`.
    link : {"probit", "logit", "cloglog"}, default "probit"
        With "cloglog" f is the log of the cumulative hazard between times of the grid.
    m : int, default 50
        Trees.
    k : float, default 2
        (-3, 3) about the average hazard, on the scale of f, spans 2 k prior sds (Chipman 2010).
    split_rules : optional
        Rules for the columns of X, as for `pymc_trees.Data`.
    **settings
        For `pymc_trees.Forest`: ``alpha``, ``beta``, ``split_prior``, ``n_cuts``, ... Weights of
        ``split_prior`` as an array, or by numbers, are of the columns of the long form, of which
        ``time`` is the first; names of columns are the same in both.

    Returns
    -------
    pymc.Model
        With the data ``X``, the forest ``f_forest`` and the observed ``event``.

    Raises
    ------
    ValueError
        What `long_form` and `Forest` refuse; a link that does not exist.

    References
    ----------
    Sparapani, Logan, McCulloch and Laud (2016). Nonparametric survival analysis using Bayesian
    Additive Regression Trees (BART). Statistics in Medicine 35(16).

    Examples
    --------
    >>> import numpy as np, pymc as pm
    >>> from pymc_trees import survival
    >>> rng = np.random.default_rng(1)
    >>> X = rng.random((60, 2))
    >>> model = survival.discrete_time(X, rng.exponential(1 + X[:, 0]), np.ones(60), times=5, m=10)
    >>> idata = pm.sample(5, tune=5, chains=1, model=model, random_seed=1, progressbar=False,
    ...                   compute_convergence_checks=False)
    >>> S = survival.survival_function(idata, model, [[0.1, 0.5]], progressbar=False)["survival"]
    >>> dict(S.sizes), bool((S.diff("time") <= 0).all())
    ({'chain': 1, 'draw': 5, 'row': 1, 'time': 5}, True)
    """
    table = read(X, split_rules)
    rows, _ = read_rows(len(table), time, event, times, entry)
    with pm.Model() as model:
        _observe_events("f", "X", table, rows, link, m, k, settings)
    return model


def recurrent_events(
    X: Any,
    time: Any,
    event: Any,
    subject: Any,
    *,
    times=50,
    link: str = "probit",
    m: int = 50,
    k: float = 2.0,
    split_rules=None,
    **settings,
) -> pm.Model:
    """Model of events that can happen again (Sparapani et al. 2020).

    At each time of the grid a subject under follow-up has an event with the probability
    ``link(f(t, v, N, x))``: v is the time since its last event and N the number of events so far.

    Parameters
    ----------
    X : (n, p) array or frame
        Covariates of n subjects.
    time, event, subject : (records,) arrays
        As for `long_form`: a record for each event, and one with event 0 for the end of follow-up.
    times, link, m, k, split_rules, **settings
        As for `discrete_time`; the first columns of the long form are ``time``, ``since`` and
        ``count``.

    Returns
    -------
    pymc.Model
        As `discrete_time`; `expected_events` asks it.

    Raises
    ------
    ValueError
        As `discrete_time`.

    References
    ----------
    Sparapani, Rein, Tarima, Jackson and Meurer (2020). Non-parametric recurrent events analysis
    with BART and an application to the hospital admissions of patients with diabetes.
    Biostatistics 21(1).

    Examples
    --------
    >>> from pymc_trees import survival
    >>> time, event = [1.0, 2.0, 3.0, 1.5, 3.0, 3.0], [1, 1, 0, 1, 0, 0]
    >>> subject = [0, 0, 0, 1, 1, 2]
    >>> model = survival.recurrent_events([[0.1], [0.2], [0.9]], time, event, subject, m=5)
    >>> model["X"].get_value()[:3].tolist()  # time, since the last event, events so far, covariate
    [[1.0, 1.0, 0.0, 0.1], [1.5, 0.5, 1.0, 0.1], [2.0, 1.0, 1.0, 0.1]]
    """
    table = read(X, split_rules)
    rows, _ = read_rows(len(table), time, event, times, None, subject)
    with pm.Model() as model:
        _observe_events("f", "X", table, rows, link, m, k, settings)
    return model


def competing_risks(
    X: Any,
    time: Any,
    cause: Any,
    *,
    times=50,
    entry=None,
    link: str = "probit",
    m: int = 50,
    k: float = 2.0,
    split_rules=None,
    **settings,
) -> pm.Model:
    """Model of events of several kinds, the first of which ends the story (Sparapani et al. 2020).

    Whether there is an event at a time of the grid is modelled as in `discrete_time`. Its cause is
    modelled by forests on the rows with events: with two causes, ``link(g(t, x))`` is the
    probability of the second; with more, each cause has a forest, combined by a softmax.

    Parameters
    ----------
    X : (n, p) array or frame
        Covariates.
    time : (n,) array
        Time of the event, or of the last observation of a subject without one.
    cause : (n,) array of numbers or text
        Cause of the event; 0 or missing for a censored time.
    times, entry, link, m, k, split_rules, **settings
        As for `discrete_time`; for all forests.

    Returns
    -------
    pymc.Model
        With the forest ``f_event_forest``, the function ``f_cause`` on the rows of events, one or
        one for each cause, the observed ``event`` and ``cause``, and the coords ``causes``.

    Raises
    ------
    ValueError
        As `discrete_time`; fewer than two causes.

    References
    ----------
    Sparapani, Logan, McCulloch and Laud (2020). Nonparametric competing risks analysis using
    Bayesian Additive Regression Trees. Statistical Methods in Medical Research 29(1).

    Examples
    --------
    >>> from pymc_trees import survival
    >>> X, time = [[0.1], [0.5], [0.7], [0.9]], [1.0, 2.0, 3.0, 2.5]
    >>> model = survival.competing_risks(X, time, ["relapse", "death", None, "relapse"], m=5)
    >>> [str(name) for name in model.coords["causes"]]
    ['death', 'relapse']
    >>> model["X_cause"].get_value().tolist()
    [[1.0, 0.1], [2.0, 0.5], [2.5, 0.9]]
    """
    table = read(X, split_rules)
    n = len(table)
    names, codes = check_cause(cause, n)
    rows, _ = read_rows(n, time, codes >= 0, times, entry)
    with pm.Model(coords={"causes": names}) as model:
        long = _observe_events("f_event", "X_event", table, rows, link, m, k, settings)
        happened = rows.y == 1
        events = long.rows(happened)
        _observe_causes(events, codes[rows.subject[happened]], names.size, link, m, k, settings)
    return model


def _observe_events(name, data, table, rows: LongRows, link, m, k, settings) -> Table:
    """Register the long rows, a forest on them, and y; the rows come back."""
    link = LINKS[check_choice("link", link, LINKS)]
    leaf = NormalLeaf(link.quantile(_share(rows.y)) / check_number("m", m, 1), _leaf_sd(m, k))
    long = long_inputs(table, rows)
    X = register_data(data, long)
    options: dict[str, Any] = dict(settings)
    if not options.keys() & {"max_nodes", "tree_prior"}:
        # However many rows they make, there is as much to learn as there are subjects and events.
        n = max(len(table), int(rows.y.sum()))
        alpha, beta = options.get("alpha", 0.95), options.get("beta", 2.0)
        options["max_nodes"] = default_max_nodes(m, rows.y.size, alpha, beta, n)
    forest = Forest(f"{name}_forest", X, m=m, leaf=leaf, **options)
    f = evaluate(forest, X)
    pm.Bernoulli("event", **link.parameter(f), observed=rows.y, shape=f.shape)
    return long


def _observe_causes(events: Table, codes, n_causes: int, link, m, k, settings) -> None:
    """Register the rows of events, a forest or one for each cause, and the causes."""
    X, sd = register_data("X_cause", events), _leaf_sd(m, k)
    if n_causes == 2:
        leaf = NormalLeaf(LINKS[link].quantile(_share(codes)) / m, sd)
        f = BART("f_cause", X, m=m, leaf=leaf, **settings)
        pm.Bernoulli("cause", **LINKS[link].parameter(f), observed=codes, shape=f.shape)
        return
    shares = (np.bincount(codes, minlength=n_causes) + 0.5) / codes.size
    leaf = NormalLeaf(np.log(shares) / m, sd)
    f = BART("f_cause", X, m=m, leaf=leaf, shape=(n_causes, codes.size), **settings)
    pm.Categorical("cause", logit_p=f.T, observed=codes, shape=f.shape[1:])


def _share(y: np.ndarray) -> float:
    """Of ones, neither 0 nor 1."""
    return (y.sum() + 0.5) / (y.size + 1.0)


def _leaf_sd(m: int, k: float) -> float:
    return 3.0 / (check_positive("k", k) * np.sqrt(m))


# ------------ `accelerated_failure_time`: a PyMC model of log times, made of public functions only


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
    table = read(X, split_rules)
    outcome = check_outcome(time, event, len(table))
    centre, spread = _log_times(outcome)
    sd = 2.0 * spread / (check_positive("k", k) * np.sqrt(check_number("m", m, 1)))
    with pm.Model() as model:
        data = register_data("X", table)
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
