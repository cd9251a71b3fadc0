"""Functions of rows that lack discrete random columns: sums over their values, by numpy and scipy.

The truth takes the trees at each value, with probabilities of scipy given the drawn parameters;
draws of the prior stand for those of a posterior. Monte Carlo: `pm.sample_posterior_predictive`
draws the columns for copies of one draw, and means are compared in standard errors, below 5.
"""

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr
from pymc.exceptions import ImputationWarning
from scipy import special, stats
from support.predictor_models import drawn
from support.random_columns import QUIET, at_points, between, close, draws_of, evaluated, found

import pymc_trees as pmt

N = 14
RNG = np.random.default_rng(4)
X, RELATED, W = RNG.random((N, 1)), RNG.normal(size=N), RNG.normal(size=N)
LEAF = {"leaf": pmt.NormalLeaf(0.0, 0.7), "m": 4, "alpha": 0.98, "beta": 0.3}
CUTS = np.linspace(-2.0, 2.0, 9)
NEW = pd.DataFrame({"x0": [0.1, 0.5, 0.9], "related": [0.0, -0.7, 1.5]})
LABELS = np.array([[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.05, 0.15, 0.8]])
KINDS = np.arange(3.0)


@pytest.fixture(scope="module")
def kinds():
    """A category whose law depends on data and draws; a dose, and labels, that depend on it."""
    with pm.Model() as model:
        data, related = pm.Data("X", X), pm.Data("related", RELATED)
        slope, centre = pm.Normal("slope", shape=3), pm.Normal("centre", shape=3)
        p = pm.math.softmax(slope * related[:, None] + data[:, 0][:, None], axis=1)
        kind = pm.Categorical("kind", p, shape=data.shape[0])
        dose = pm.Normal("dose", centre[kind], 0.6, shape=data.shape[0])
        pm.Categorical("label", p=pt.constant(LABELS)[kind], observed=np.zeros(N, dtype=int))
        pm.Normal("size", centre[kind], 0.7, observed=W)
        pm.Normal("w", dose, 0.4, observed=W)
        pm.Normal("sum", dose + centre[kind], 0.4, observed=W)
        columns = pmt.with_columns(data, kind=kind, dose=dose, cuts={"dose": CUTS})
        f = pmt.BART("f", columns, **LEAF)
        pm.Deterministic("g", f + dose)
        pm.Deterministic("both", pm.math.exp(f) + centre[kind] * kind)
        pm.Normal("y", f, 0.5, observed=W, shape=f.shape)
    return drawn(model, NEW)


def shares_of_kinds(case):
    """(draws, rows, kinds) prior probabilities, and (draws, 1, kinds) centres."""
    slope, centre = (
        case.idata.posterior[v].to_numpy().reshape(-1, 1, 3) for v in ("slope", "centre")
    )
    return special.softmax(slope * NEW["related"].to_numpy()[:, None], axis=2), centre


def shares_of_doses(law):
    """(..., intervals) of a frozen law (...)."""
    return np.diff([law.cdf(c) for c in [-np.inf, *CUTS, np.inf]], axis=0).transpose(1, 2, 3, 0)


def joint(case, *likelihoods, of_dose=lambda centre: (centre, 0.6)):
    """Values of f, (draws, rows, kinds, intervals), and their probabilities."""
    f = at_points(case, NEW[["x0"]].to_numpy(), KINDS, between(CUTS))
    share, centre = shares_of_kinds(case)
    for likelihood in likelihoods:
        share = share * likelihood(centre)
    share /= share.sum(axis=2, keepdims=True)
    mean, sd = of_dose(np.broadcast_to(centre, share.shape))
    f = f.reshape(*share.shape, -1)
    return f, share[..., None] * shares_of_doses(stats.norm(mean, sd))


def mean(f, weights):
    return (f * weights).sum(axis=(2, 3))


def test_the_prior_at_new_rows(kinds):
    """The category first, then the dose given it; each alone where the other is known."""
    f, weights = joint(kinds)
    close(found(kinds, NEW), mean(f, weights))
    close(found(kinds, NEW, func=np.exp), mean(np.exp(f), weights))
    share, centre = shares_of_kinds(kinds)
    at = at_points(kinds, NEW[["x0"]].to_numpy(), KINDS, [0.3])
    close(found(kinds, NEW.assign(dose=0.3)), (at * share).sum(axis=2))
    cells = found(kinds, NEW.assign(dose=0.3, kind=[np.nan, 1.0, 2.0]))
    close(cells[:, 0], (at * share)[:, 0].sum(axis=1))
    close(cells[:, 1:], at[:, [1, 2], [1, 2]])
    # what takes the category beside the trees is summed too
    truth = (np.exp(at) + centre * KINDS) * share
    close(found(kinds, NEW.assign(dose=0.3), var_name="both"), truth.sum(axis=2))


def test_measurements_of_a_category(kinds):
    """By any law given the category; by those of a dose that depends on it."""
    label, size, w = np.array([0.0, np.nan, 2.0]), np.array([np.nan, 0.4, -1.0]), 0.8

    def of_label(centre):
        each = [np.ones(3) if np.isnan(one) else LABELS[:, int(one)] for one in label]
        return np.array(each)

    def of_size(centre):
        given = stats.norm.pdf(size[:, None], centre, 0.7)
        return np.where(np.isnan(size)[:, None], 1.0, given)

    def of_w(centre):
        return stats.norm.pdf(w, centre, np.hypot(0.6, 0.4))

    def dose_given_w(centre):
        precision = 1 / 0.6**2 + 1 / 0.4**2
        return (centre / 0.6**2 + w / 0.4**2) / precision, precision**-0.5

    close(found(kinds, NEW.assign(label=label)), mean(*joint(kinds, of_label)))
    each = NEW.assign(label=label, size=size, w=w)
    truth = joint(kinds, of_label, of_size, of_w, of_dose=dose_given_w)
    made = pmt.predictions(kinds.idata, kinds.model, each, var_name="f", **QUIET)
    close(made["prediction"].to_numpy().reshape(8, 3), mean(*truth))
    assert (
        "kind: integrated over its prior at each row given label, size"
        in made.attrs["random_columns"]
    )
    known = found(kinds, each.drop(columns="w").assign(dose=0.3))
    at = at_points(kinds, NEW[["x0"]].to_numpy(), KINDS, [0.3])
    share, centre = shares_of_kinds(kinds)
    share = share * of_label(centre) * of_size(centre)
    close(known, (at * share).sum(axis=2) / share.sum(axis=2))


def test_what_pymc_draws_at_new_rows(kinds):
    n = 4_000
    one = kinds.idata.posterior.to_dataset().isel(chain=[1], draw=[2])
    copies = one.isel(draw=np.zeros(n, dtype=int)).assign_coords(draw=np.arange(n))
    with kinds.model:
        pm.set_data({"X": NEW[["x0"]].to_numpy(), "related": NEW["related"].to_numpy()})
        sampled = pm.sample_posterior_predictive(
            xr.DataTree.from_dict({"posterior": copies}),
            sample_vars=["kind", "dose"],
            var_names=["kind", "f"],
            predictions=True,
            random_seed=3,
            **QUIET,
        ).predictions
        pm.set_data({"X": X, "related": RELATED})
    assert all(len(np.unique(sampled["kind"][0, :, i])) == 3 for i in range(3))
    values = sampled["f"][0]
    error = values.std("draw").to_numpy() / np.sqrt(n)
    difference = values.mean("draw").to_numpy() - found(kinds, NEW)[6]
    assert (abs(difference) < 5 * error).all() and (error > 0).all()


def test_questions_about_columns(kinds):
    """All are those of the integrated function; categories are compared without being known."""
    low, high = (found(kinds, NEW.assign(x0=v)) for v in (0.2, 0.7))
    asked = {"call": pmt.comparisons, "name": "x0", "variables": {"x0": (0.2, 0.7)}}
    close(found(kinds, NEW, **asked)[:, 0], high - low)
    slope = found(kinds, NEW, call=pmt.slopes, name="x0", variables="x0", step=0.2)
    up, down = (found(kinds, NEW.assign(x0=NEW["x0"] + s)) for s in (0.1, -0.1))
    close(slope, (up - down) / 0.2)
    given_X = {"call": lambda *a, data, **k: pmt.partial_dependence(*a, X=data, **k)}
    average = found(kinds, NEW, "average", features="x0", grid=[0.2, 0.7], **given_X)
    close(average, np.stack([low.mean(axis=1), high.mean(axis=1)], axis=1))
    made = pmt.accumulated_effects(
        kinds.idata, kinds.model, "x0", NEW, var_name="f", grid=[0.1, 0.9], **QUIET
    )
    first, last = (found(kinds, NEW.assign(x0=v)) for v in (0.1, 0.9))
    change = np.diff(made["effect"].to_numpy().reshape(-1, 2))[:, 0]
    close(change, (last - first).mean(axis=1))
    each = [found(kinds, NEW.assign(kind=k)) for k in range(3)]
    compared = found(kinds, NEW, "kind", call=pmt.comparisons, variables="kind")
    close(compared, np.stack([each[1] - each[0], each[2] - each[0]], axis=1))
    held = found(kinds, NEW, "average", features="kind", **given_X)
    close(held, np.stack([one.mean(axis=1) for one in each], axis=1))
    by_name = pmt.predictions(kinds.idata, kinds.model, NEW, var_name="f", summary="mean", **QUIET)
    close(by_name["prediction"][0], found(kinds, NEW).mean(axis=0))


def test_the_rows_of_the_model(kinds):
    for name in ("f", "both"):
        own = pmt.predictions(kinds.idata, kinds.model, var_name=name, **QUIET)["prediction"]
        np.testing.assert_allclose(own, kinds.idata.posterior[name], rtol=0, atol=1e-12)


def two_values():
    """The probability is that of a forest."""
    with pm.Model() as model:
        g = pmt.BART("g", X, leaf=pmt.NormalLeaf(0.0, 0.7), m=3)
        ill = pm.Bernoulli("ill", logit_p=g, shape=N)
        f = pmt.BART("f", pmt.with_columns(X, ill=ill), **LEAF)
        pm.Normal("y", f, 0.7, observed=W)
    case = drawn(model, X[:3] + 0.01)
    function, values = evaluated(case, "g_forest")
    p = special.expit([function(v, case.new).ravel() for v in values])
    return case, at_points(case, case.new, [0.0, 1.0]), np.stack([1 - p, p], axis=2)


def counts():
    """Sizes that are data, split by cuts: values between two cuts go together; a measurement."""
    size = np.resize([4, 30, 12], N)
    with pm.Model() as model:
        count = pm.Binomial("count", pm.Data("size", size), pm.Beta("p", 2, 2), shape=N)
        pm.Normal("seen", count, 2.0, observed=W)
        f = pmt.BART("f", pmt.with_columns(X, count=count, cuts={"count": [2, 5.5, 11]}), **LEAF)
        pm.Normal("y", f, 0.7, observed=W)
    case = drawn(model, {"X": X[:3] + 0.01, "size": np.array([40, 3, 0])})
    [p] = draws_of(case, "p")
    law = stats.binom(np.array([40, 3, 0])[:, None], p[..., None])
    values, share = np.arange(41.0), law.pmf(np.arange(41.0))
    f = at_points(case, case.new["X"], values)
    weights = share * stats.norm.pdf(14.0, values, 2.0)
    truth = (f * weights).sum(axis=2)[:, 0] / weights.sum(axis=2)[:, 0]
    measured = found(case, case.new | {"seen": np.array([14.0, np.nan, np.nan])})
    close(measured[:, 0], truth)
    return case, f, share


def whole_numbers():
    with pm.Model() as model:
        z = pm.DiscreteUniform("z", -1, 3, shape=N)
        f = pmt.BART("f", pmt.with_columns(X, z=z), **LEAF)
        pm.Normal("y", f, 0.7, observed=W)
    case = drawn(model, X[:3] + 0.01)
    return case, at_points(case, case.new, np.arange(-1.0, 4.0)), np.full(5, 0.2)


def partly_observed():
    """The parameters of the missing cells are rows of a matrix, taken by a mask; ordered kinds."""
    cells = np.where(np.arange(N) % 3 == 0, -1, np.arange(N) % 4)
    with pm.Model() as model, pytest.warns(ImputationWarning):
        slope, data = pm.Normal("slope", shape=4), pm.Data("X", X)
        p = pm.math.softmax(slope * data[:, 0][:, None], axis=1)
        z = pm.Categorical("z", p, observed=np.ma.masked_array(cells, cells < 0))
        rules = {"split_rules": {"z": "continuous"}}
        f = pmt.BART("f", pmt.with_columns(data, z=z), **rules, **LEAF)
        pm.Normal("y", f, 0.7, observed=W, shape=f.shape)
    case = drawn(model, X[:3] + 0.01)
    slope = case.idata.posterior["slope"].to_numpy().reshape(-1, 1, 4)
    share = special.softmax(slope * case.new, axis=2)
    return case, at_points(case, case.new, np.arange(4.0)), share


@pytest.mark.filterwarnings("ignore:Numba will use object mode")  # DiscreteUniform in PyMC
@pytest.mark.parametrize("make", [two_values, counts, whole_numbers, partly_observed])
def test_laws(make):
    case, f, share = make()
    assert abs(np.diff(f, axis=2)).max() > 0.01
    close(found(case, case.new), (f * share).sum(axis=-1))


# --------------------------------------------------------------------------------- What is refused


def test_what_is_refused(kinds):
    def refused(words, data=NEW, **asked):
        with pytest.raises(ValueError, match=words):
            found(kinds, data, **asked)

    refused("'label'. are impossible at some row", NEW.assign(label=3.0))
    refused("'label'. are impossible at some row", NEW.assign(label=0.5))
    refused("'sum' measures the random columns .'kind', 'dose'. together", NEW.assign(sum=0.5))
    refused("takes the random columns .'dose'. beside", NEW, var_name="g")


def test_many_values():
    with pm.Model() as model:
        many = pm.Binomial("many", 20_000, 0.5, shape=N)
        f = pmt.BART("f", pmt.with_columns(X, many=many), **LEAF)
        pm.Normal("y", f, 0.7, observed=W)
    case = drawn(model, X[:3])
    with pytest.raises(ValueError, match="'many' has 20001 values.*over 10000 at most: give"):
        found(case, X[:3])
    known = pd.DataFrame({"x0": X[:3, 0], "many": 9_980})
    assert np.isfinite(found(case, known)).all()
