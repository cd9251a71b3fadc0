"""Recipes against models written by hand, and the posterior of one against its enumeration."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from scipy import stats
from scipy.special import log_ndtr, logsumexp, ndtr
from support import oracle as o
from support.naive.batches import batch_means, gap

import pymc_trees as pmt
from pymc_trees import survival
from pymc_trees.targets.choose import read_target

pytestmark = [
    pytest.mark.usefixtures("quick_compile"),
    # NUTS tries long steps while it tunes.
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),
]
N = 40
RNG = np.random.default_rng(7)
X = pd.DataFrame({"age": RNG.random(N), "site": RNG.choice(list("abc"), N)})
X.loc[::9, "age"] = np.nan
TIME = RNG.exponential(1.0, N) + 0.1
EVENT = RNG.random(N) < 0.7
CAUSE = np.where(EVENT, RNG.choice(["death", "relapse"], N), None)
THREE = np.where(EVENT, RNG.integers(1, 4, N), 0)
SUBJECT = np.repeat(np.arange(N), 2)
RECORDS = np.column_stack([TIME / 2, TIME]).ravel()
AGAIN = np.column_stack([EVENT, np.zeros(N)]).ravel()
keep = (AGAIN == 1) | (np.arange(2 * N) % 2 == 1)
SUBJECT, RECORDS, AGAIN = SUBJECT[keep], RECORDS[keep], AGAIN[keep]
SAMPLE = {"draws": 8, "tune": 10, "chains": 2, "cores": 1, "random_seed": 3}
SAMPLE |= {"progressbar": False, "compute_convergence_checks": False}
LINKS = {
    "probit": (lambda f: {"p": pm.math.invprobit(f)}, stats.norm.ppf),
    "logit": (lambda f: {"logit_p": f}, lambda p: np.log(p / (1 - p))),
    "cloglog": (lambda f: {"p": -pm.math.expm1(-pm.math.exp(f))}, lambda p: np.log(-np.log(1 - p))),
}


def hazards_by_hand(name, data, long, link, m=6):
    """y of the long form by a forest about the average hazard."""
    parameter, quantile = LINKS[link]
    share = (long.y.sum() + 0.5) / (len(long.y) + 1)
    leaf = pmt.NormalLeaf(quantile(share) / m, 3 / (2 * np.sqrt(m)))
    f = pmt.BART(name, pmt.Data(data, long.X), m=m, leaf=leaf)
    pm.Bernoulli("event", **parameter(f), observed=long.y, shape=f.shape)


def causes_by_hand(long, codes, link, m=6):
    parameter, quantile = LINKS[link]
    now = long.y == 1
    codes, sd = codes[long.row[now]], 3 / (2 * np.sqrt(m))
    data = pmt.Data("X_cause", long.X[now])
    if codes.max() == 1:
        leaf = pmt.NormalLeaf(quantile((codes.sum() + 0.5) / (len(codes) + 1)) / m, sd)
        f = pmt.BART("f_cause", data, m=m, leaf=leaf)
        pm.Bernoulli("cause", **parameter(f), observed=codes)
    else:
        shares = (np.bincount(codes) + 0.5) / len(codes)
        leaf = pmt.NormalLeaf(np.log(shares) / m, sd)
        f = pmt.BART("f_cause", data, m=m, leaf=leaf, shape=(3, len(codes)))
        pm.Categorical("cause", logit_p=f.T, observed=codes)


def discrete(link):
    ours = survival.discrete_time(X, TIME, EVENT, times=6, m=6, link=link, entry=TIME / 5)
    long = survival.long_form(X, TIME, EVENT, times=6, entry=TIME / 5)
    with pm.Model() as theirs:
        hazards_by_hand("f", "X", long, link)
    return ours, theirs


def recurrent(link):
    ours = survival.recurrent_events(X, RECORDS, AGAIN, SUBJECT, times=6, m=6, link=link)
    long = survival.long_form(X, RECORDS, AGAIN, times=6, subject=SUBJECT)
    with pm.Model() as theirs:
        hazards_by_hand("f", "X", long, link)
    return ours, theirs


def competing(link, cause=CAUSE):
    ours = survival.competing_risks(X, TIME, cause, times=6, m=6, link=link)
    long = survival.long_form(X, TIME, EVENT, times=6)
    codes = np.full(N, -1)
    codes[EVENT] = np.unique(cause[EVENT], return_inverse=True)[1]
    with pm.Model() as theirs:
        hazards_by_hand("f_event", "X_event", long, link)
        causes_by_hand(long, codes, link)
    return ours, theirs


def accelerated(distribution):
    ours = survival.accelerated_failure_time(X, TIME, EVENT, distribution=distribution, m=6)
    logs = stats.CensoredData.right_censored(np.log(TIME), ~EVENT)
    centre, spread = stats.norm.fit(logs)
    with pm.Model() as theirs:
        limit = pm.Data("limit", np.where(EVENT, np.inf, TIME))
        leaf = pmt.NormalLeaf(centre / 6, 2 * spread / (2 * np.sqrt(6)))
        f = pmt.BART("f", pmt.Data("X", X), m=6, leaf=leaf)
        sigma = pm.HalfNormal("sigma", spread)
        if distribution == "weibull":
            law = pm.Weibull.dist(1 / sigma, pm.math.exp(f))
        else:
            law = pm.LogNormal.dist(f, sigma)
        pm.Censored("time", law, lower=None, upper=limit, observed=TIME, shape=f.shape)
    return ours, theirs


CASES = {
    "probit": lambda: discrete("probit"),
    "logit": lambda: discrete("logit"),
    "cloglog": lambda: discrete("cloglog"),
    "recurrent": lambda: recurrent("probit"),
    "two causes": lambda: competing("probit"),
    "two causes by logit": lambda: competing("logit"),
    "three causes": lambda: competing("probit", THREE),
    "lognormal": lambda: accelerated("lognormal"),
    "weibull": lambda: accelerated("weibull"),
}


@pytest.mark.parametrize("case", CASES)
def test_draws_are_those_of_the_model_written_by_hand(case):
    ours, theirs = CASES[case]()
    found, wanted = (pm.sample(model=model, **SAMPLE) for model in (ours, theirs))
    names = [rv.name for rv in theirs.free_RVs]
    assert [rv.name for rv in ours.free_RVs] == names
    for name in names:
        if name.endswith("_forest"):
            asked = {"var_name": name, "progressbar": False}
            known = {"var_name": name.removesuffix("_forest"), "progressbar": False}
            if name.removesuffix("_forest") not in theirs.named_vars:
                continue  # of several outputs, looked at together
            of_ours = asked if name.removesuffix("_forest") not in ours.named_vars else known
            a = pmt.predictions(found, ours, **of_ours)["prediction"]
            b = pmt.predictions(wanted, theirs, **known)["prediction"]
        else:
            a, b = found.posterior[name], wanted.posterior[name]
        assert np.ptp(b.to_numpy()) > 0
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9, err_msg=name)
    if case == "three causes":
        np.testing.assert_allclose(found.posterior["f_cause"], wanted.posterior["f_cause"])


def test_functions_at_long_rows_are_not_recorded():
    for case in ("probit", "recurrent", "two causes"):
        model = CASES[case]()[0]
        long = model["X" if case != "two causes" else "X_event"].get_value().shape[0]
        recorded = [one for one in model.deterministics if one.eval().shape[0] == long]
        assert recorded == []


TARGETS = {"probit": "latent", "logit": "latent", "lognormal": "latent", "two causes": "latent"}


@pytest.mark.parametrize("case", TARGETS)
def test_rows_are_gaussian_given_latent_variables(case):
    model = CASES[case]()[0]
    for rv in model.free_RVs:
        if rv.name.endswith("_forest"):
            assert read_target(model, rv).kind == TARGETS[case]


@pytest.mark.parametrize("distribution", ["lognormal", "weibull"])
def test_times_of_new_rows_are_drawn_without_limits(distribution):
    model = CASES[distribution]()[0]
    idata = pm.sample(model=model, **SAMPLE)
    with model:
        pmt.set_data({"X": X.iloc[:5], "limit": np.full(5, np.inf)})
        drawn = pm.sample_posterior_predictive(idata, random_seed=1, progressbar=False)
    times = drawn.posterior_predictive["time"]
    assert times.shape == (2, 8, 5) and (times > 0).all()


@pytest.mark.parametrize(
    ("time", "event"),
    [(np.ones(4), np.ones(4)), ([1.0, 2, 3, 4], [0, 0, 0, 1]), ([1.0, 1, 2, 2], [1, 0, 0, 0])],
)
def test_times_that_say_little_of_the_scale_have_a_model(time, event):
    for distribution in ("lognormal", "weibull"):
        model = survival.accelerated_failure_time(
            np.arange(4.0)[:, None], time, event, distribution=distribution, m=3
        )
        assert np.isfinite(model.compile_logp()(model.initial_point()))


def test_an_event_in_every_row_has_a_model():
    model = survival.discrete_time(np.arange(4.0)[:, None], np.ones(4), np.ones(4), m=3)
    assert np.isfinite(model.compile_logp()(model.initial_point()))


def exact_survival(long, n, prior, leaf_mean, leaf_sd):
    """Posterior mean of the survival function of a subject with a row at each time of the grid.

    Given the tree leaf values are independent, so that the mean of a product of 1 - h along the
    rows is one of products over leaves.
    """
    y = long.y

    def log_likelihood(rows, values):
        ones = sum(y[i] for i in rows)
        return ones * log_ndtr(values) + (len(rows) - ones) * log_ndtr(-values)

    prior_density = o.normal_log_density(leaf_mean, leaf_sd)
    reach = 9 * leaf_sd
    leaf = o.QuadratureLeaf(log_likelihood, prior_density, leaf_mean - reach, leaf_mean + reach)
    trees = o.enumerate_trees(long.X, **prior)
    weights, _ = o.posterior(trees, leaf)
    path = np.flatnonzero(long.row == n)
    found = np.zeros(len(path))
    for partition, weight in o.partition_probabilities(trees, weights).items():
        for k in range(len(path)):
            product = 1.0
            for rows in partition:
                lived = sum(i in rows for i in path[: k + 1])
                terms = leaf._log_terms(rows)
                share = np.exp(terms - logsumexp(terms))
                product *= share @ ndtr(-leaf.values) ** lived
            found[k] += weight * product
    return found


@pytest.mark.full
def test_posterior_survival_is_the_enumerated_one():
    """One tree; 40 batches, beyond 5 standard errors one average in 80,000."""
    x = np.array([[0.0], [0.3], [1.0]])
    time, event = np.array([1.0, 3.0, 2.0]), np.array([1, 1, 0])
    long = survival.long_form(x, time, event, times=[1.0, 2.0, 3.0])
    assert len(long.y) == 6
    model = survival.discrete_time(x, time, event, times=[1.0, 2.0, 3.0], m=1, alpha=0.8, beta=0.5)
    share = (2 + 0.5) / (6 + 1)
    wanted = exact_survival(long, 1, {"alpha": 0.8, "beta": 0.5}, stats.norm.ppf(share), 1.5)
    settings = SAMPLE | {"draws": 10_000, "tune": 200, "chains": 1}
    idata = pm.sample(model=model, **settings)
    curve = survival.survival_function(idata, model, x[[1]], progressbar=False)["survival"]
    found = gap(batch_means(curve.to_numpy()[0, :, 0], 40), wanted)
    assert found.within(5.0, 0.05), found
