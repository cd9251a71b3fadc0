"""Trees that stand still are reported, with a reason and a remedy; others are not."""

import re

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr
from support import twin
from support.small_models import bart_model, forest_of, sample, step_data

import pymc_trees as pmt
from pymc_trees.distributions.capacity import LARGE_TABLE
from pymc_trees.hooks import convergence as still_trees
from pymc_trees.hooks.convergence import (
    MIN_CHANGES_PER_VISIT,
    after_sampling,
    hardly_moves,
    likely_reason,
)
from pymc_trees.step_methods.kernels.acceptance import changes_per_visit, n_changes

pytestmark = pytest.mark.usefixtures("quick_compile")
N = 40


def words(caplog):
    return [r.getMessage() for r in caplog.records if "hardly move" in r.getMessage()]


def test_the_statistic_counts_changed_trees():
    """One move a visit: of each step, the trees whose splits differ from those before."""
    model = bart_model(n=20, m=6, sigma=None)
    with model:
        idata = sample(60, 0, chains=1, step=pmt.CGM())
    layout = forest_of(model)[1]
    draws = idata.posterior["mu_forest"].values[0]

    def splits(tree):
        return None if len(tree) == 1 else (tree[0], tree[1], splits(tree[2]), splits(tree[3]))

    trees = [[splits(t) for t in twin.read_trees(draw, layout)] for draw in draws]
    changed = [
        np.mean([a != b for a, b in zip(one, other, strict=True)])
        for one, other in zip(trees, trees[1:], strict=False)
    ]
    found = idata.sample_stats["changes_per_visit"].values[0, 1:]
    np.testing.assert_allclose(found, changed)
    assert 0 < found.mean() < 1


def test_small_steps_are_no_changes():
    assert n_changes(["grow", "perturb", "bandwidth", "swap"], np.array([1, 50, 50, 2])) == 3
    found = [{"visits": 10, "changes": 2, "other": 1}, {"visits": 2, "changes": 1}, {"other": 3}]
    assert changes_per_visit(found) == 0.25 and found == [{"other": 1}, {}, {"other": 3}]
    assert np.isnan(changes_per_visit([{}]))


@pytest.mark.parametrize(
    ("m", "iterations", "share", "accepted", "still"),
    [
        (20, 100, 0.04, np.nan, True),
        (20, 100, 0.06, np.nan, False),
        (20, 9, 0.0, np.nan, False),  # 180 visits
        (1, 1000, 0.0, np.nan, False),  # the posterior of a single tree may be one tree
        (1, 1000, 0.0, 0.9, False),  # its leaf values move
        (1, 1000, 0.0, 0.01, True),
    ],
)
def test_what_stands_still(m, iterations, share, accepted, still):
    forest = forest_of(bart_model(n=6, m=m, data=False))[0]
    changes = np.full(iterations, share)
    assert hardly_moves(forest, changes, np.full(iterations, accepted)) == still
    changes[::2] = np.nan  # of steps without a visit
    assert hardly_moves(forest, changes, np.full(iterations, accepted)) == (
        still and iterations * m >= 400
    )


def test_healthy_trees_are_not_reported(caplog):
    with bart_model(n=50, m=10, sigma=None):
        found = sample(40, 60, compute_convergence_checks=True)
    assert not words(caplog)
    assert (found.sample_stats["changes_per_visit"].mean("draw") > 2 * MIN_CHANGES_PER_VISIT).all()


@pytest.mark.parametrize("cores", [1, pytest.param(2, marks=pytest.mark.full)])
def test_the_end_of_tuning_reports_once(caplog, monkeypatch, cores):
    """In the calling process, wherever the chains are; not again after sampling."""
    monkeypatch.setattr(still_trees, "MIN_CHANGES_PER_VISIT", 2.0)
    with bart_model(n=50, m=10, sigma=None):
        sample(25, 60, cores=cores, compute_convergence_checks=True)
    [text] = words(caplog)
    assert re.search(
        r"trees of mu hardly move: .*in the second half of tuning \(chain [01]\)", text
    )


def test_without_tuning_the_draws_are_judged(caplog, monkeypatch):
    monkeypatch.setattr(still_trees, "MIN_CHANGES_PER_VISIT", 2.0)
    with bart_model(n=50, m=10, sigma=None):
        sample(25, 0, compute_convergence_checks=True)
    [text] = words(caplog)
    assert "after tuning (chains [0, 1] of 2)" in text


def test_chains_of_joblib_are_judged_after_sampling(caplog, monkeypatch):
    monkeypatch.setattr(still_trees, "MIN_CHANGES_PER_VISIT", 2.0)
    with bart_model(n=50, m=10, sigma=None):
        pmt.sample_chains(chains=2, draws=25, tune=30, cores=1, random_seed=1, progressbar=False)
    [text] = words(caplog)
    assert "after tuning (chains [0, 1] of 2)" in text


def test_each_forest_is_named(monkeypatch):
    monkeypatch.setattr(still_trees, "MIN_CHANGES_PER_VISIT", 2.0)
    X, y = step_data()
    with pm.Model() as model:
        a = pmt.BART("a", X, y, m=10)
        b = pmt.BART("b", X, y, m=10)
        pm.Normal("y", a + b, 0.5, observed=y)
    numbers = {
        f"changes_per_visit_{name}_forest": (("chain", "draw"), np.full((2, 30), share))
        for name, share in (("a", 0.01), ("b", np.nan))
    }
    idata = xr.DataTree.from_dict({"sample_stats": xr.Dataset(numbers)})
    [found] = after_sampling(idata, model)
    assert found.message.startswith("The trees of a hardly move: 1.0% of visits")
    assert after_sampling(xr.DataTree(), model) == []


def data():
    X = np.random.default_rng(5).uniform(size=(N, 2))
    return X, 2 * np.sin(6 * X[:, 0]), np.random.default_rng(6)


def counts_of_thousands(leaf=None):
    X, f, rng = data()
    k = rng.binomial(5000, 1 / (1 + np.exp(-f)))
    mu = pmt.BART("mu", X, k, m=5, leaf=leaf)  # Y of another scale than the logit
    pm.Binomial("y", 5000, logit_p=mu, observed=k)


def rates(leaf=None):
    X, f, rng = data()
    k = rng.poisson(np.exp(f + 4))
    mu = pmt.BART("mu", X, k, m=5, leaf=leaf)
    pm.Poisson("y", pm.math.exp(mu), observed=k)


def far_away(leaf=None):
    X, f, rng = data()
    mu = pmt.BART("mu", X, m=5, leaf=leaf or pmt.NormalLeaf(0, 0.1))
    pm.Gamma("y", 2.0, 2.0 * pm.math.exp(-mu), observed=np.exp(f + 20))


@pytest.mark.parametrize(
    ("likelihood", "best", "sds"),
    [(counts_of_thousands, 0.4, (0.5, 4)), (rates, 4.5, (0.3, 3)), (far_away, 20.5, (0.3, 3))],
)
def test_a_leaf_prior_of_another_scale(likelihood, best, sds):
    """The prior that is proposed is about the best constant; with it nothing is said of scale."""
    with pm.Model() as model:
        likelihood()
    text = likely_reason(model, model["mu_forest"])
    mean, sd = proposed(text)
    assert mean * 5 == pytest.approx(best, abs=1.0)
    assert sds[0] < sd * np.sqrt(5) < sds[1]
    with pm.Model() as model:
        likelihood(pmt.NormalLeaf(mean, sd))
    assert "far from" not in likely_reason(model, model["mu_forest"])


def test_a_large_table_is_no_sharp_likelihood():
    """With a free sigma there is nothing to loosen."""
    X = np.random.default_rng(5).uniform(size=(LARGE_TABLE, 2))
    for n, words in ((LARGE_TABLE, "chains or more"), (100, "so sharp")):
        with pm.Model() as model:
            f = pmt.BART("f", X[:n], X[:n, 0], m=5)
            pm.Normal("y", f, pm.HalfNormal("sigma", 1), observed=X[:n, 0])
        assert words in likely_reason(model, model["f_forest"])


def proposed(text):
    """Numbers of the leaf prior that a message proposes."""
    found = re.search(r"Give leaf=pymc_trees.NormalLeaf\((\S+), (\S+)\)", text)
    return float(found[1]), float(found[2])


def above_f(mu, y):
    pm.CustomDist("y", mu, logp=lambda v, mu: pt.switch(v > mu, mu - v, -np.inf), observed=y)


def above_f_smoothly(mu, y):
    pm.ExGaussian("y", mu=mu, sigma=0.2, nu=1.0, observed=y)


def up_to_f(mu, y):
    pm.Uniform("y", -5.0, mu, observed=y)


def nan_above(mu, y):
    pm.Potential("y", -((y - mu) ** 2) + 0.1 * pt.sqrt(3.0 - mu))


@pytest.mark.parametrize(
    ("likelihood", "words"),
    [
        (above_f, "its support depends on f"),
        (up_to_f, "its support depends on f"),
        (nan_above, "The log-likelihood is NaN where f is"),
        (above_f_smoothly, "The likelihood is so sharp"),
    ],
)
def test_a_support_that_depends_on_f(likelihood, words):
    X, f, rng = data()
    with pm.Model() as model:
        mu = pmt.BART("mu", X, m=5, leaf=pmt.NormalLeaf(-0.5, 0.7))
        likelihood(mu, f + rng.exponential(size=N))
    assert words in likely_reason(model, model["mu_forest"])


def basis():
    X, f, rng = data()
    t = rng.uniform(size=N)
    k = rng.binomial(5000, 1 / (1 + np.exp(-(f * t + f[::-1]))))
    return X, np.column_stack([np.ones(N), t]), k


def test_several_values_in_a_leaf():
    X, B, k = basis()
    with pm.Model() as model:
        mu = pmt.BART("mu", X, m=5, leaf=pmt.BasisLeaf(B, 0, 0.7))
        pm.Binomial("y", 5000, logit_p=mu, observed=k)
    assert "so sharp" in likely_reason(model, model["mu_forest"])
    with pm.Model() as model:
        shared = {"shape": (2, len(X)), "separate_trees": False}
        mu = pmt.BART("mu", X, m=5, leaf=pmt.NormalLeaf(0, 0.7), **shared)
        pm.Normal("y", mu[0], pm.math.exp(mu[1]), observed=k)
    text = likely_reason(model, model["mu_forest"])
    assert "proposed together" in text and "for each output" in text


def with_proposed_leaf(likelihood):
    """What the message about the leaf prior says."""
    with pm.Model(model=None) as model:
        likelihood()
    mean, sd = proposed(likely_reason(model, model["mu_forest"]))
    return lambda: likelihood(pmt.NormalLeaf(mean, sd))


def smooth():
    X, f, rng = data()
    mu = pmt.BART("mu", X, m=5, leaf=pmt.NormalLeaf(-0.5, 0.7))
    above_f_smoothly(mu, f + rng.exponential(size=N))


def varied_counts(basis, scaled):
    """Rows that vary more than a Binomial allows, with a scale of its own or without."""
    X, f, rng = data()
    k = rng.binomial(5000, 1 / (1 + np.exp(-f - 0.5 * rng.standard_normal(N))))
    sd, columns = 1.5 / np.sqrt(20), np.column_stack([np.ones(N), rng.uniform(size=N)])
    leaf = pmt.BasisLeaf(columns, 0, sd) if basis else pmt.NormalLeaf(0, sd)
    mu = pmt.BART("mu", X, m=20, leaf=leaf)
    if not scaled:
        pm.Binomial("y", 5000, logit_p=mu, observed=k)
        return
    p, size = pm.math.invlogit(mu), pm.HalfNormal("size", 50)
    pm.BetaBinomial("y", n=5000, alpha=size * p, beta=size * (1 - p), observed=k)


@pytest.mark.full
@pytest.mark.parametrize("basis", [False, True])
def test_large_counts_without_a_scale_of_their_own_are_reported(basis, caplog):
    with pm.Model():
        varied_counts(basis, scaled=False)
        found = sample(60, 100, compute_convergence_checks=True)
    assert "pm.BetaBinomial" in words(caplog)[0]
    assert (found.sample_stats["changes_per_visit"].mean("draw") < MIN_CHANGES_PER_VISIT).all()


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # PyMC's NUTS, early in tuning
@pytest.mark.parametrize(
    "declare",
    [
        lambda: with_proposed_leaf(rates)(),
        lambda: with_proposed_leaf(far_away)(),
        smooth,
        lambda: varied_counts(False, scaled=True),
        lambda: varied_counts(True, scaled=True),
    ],
    ids=["leaf of rates", "leaf of times", "support", "scale", "scale and basis"],
)
def test_trees_move_once_a_message_was_heeded(declare, caplog):
    with pm.Model():
        declare()
        found = sample(60, 100, compute_convergence_checks=True)
    assert not words(caplog)
    assert (found.sample_stats["changes_per_visit"].mean("draw") > MIN_CHANGES_PER_VISIT).all()
