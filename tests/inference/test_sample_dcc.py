"""`sample_dcc` as a whole: weights, groups, seeds, processes."""

from types import SimpleNamespace

import numpy as np
import pymc as pm
import pytensor
import pytest
import xarray as xr
from scipy import special
from support.soft_models import classification, posterior_of, regression, scaled
from support.soft_quadrature import log_evidence

import pymc_trees as pmt
from pymc_trees.dcc.dcc import DCC, RUN, Settings, check_settings
from pymc_trees.dcc.kernels.encode import label_of, log_prior
from pymc_trees.dcc.local import LocalChain, Runner, sharpness, visit, warm_up

SMALL = {"tune": 150, "local_draws": 40, "cores": 1, "progressbar": False}


@pytest.fixture(scope="module")
def run():
    model, X, y = regression()
    with model:
        idata = pmt.sample_dcc(14, 250, 8, random_seed=1, **SMALL)
    return model, X, y, idata


@pytest.fixture(scope="module")
def posterior(run):
    return posterior_of(run[0])


def test_weights_are_evidence_times_prior_and_the_evidence_is_right(run):
    _, X, y, idata = run
    t = idata["topologies"].to_dataset()
    np.testing.assert_allclose(t["weight"].sum(), 1.0)
    mass = np.exp(t["log_evidence"] + t["log_prior"])
    np.testing.assert_allclose(t["weight"], mass / mass.sum(), rtol=1e-10)
    assert (np.diff(t["weight"]) <= 0).all()
    for label in ("L", "SLL", "SSLLL", "SLSLL"):
        one = t.sel(topology=label)
        assert one["log_prior"].item() == pytest.approx(log_prior(label, 0.95, 1.0))
        # Eight chains of a few visits: the jackknife's error is below 0.1 each.
        truth = log_evidence(label, scaled(X), y, 0.05)
        assert one["log_evidence"].item() == pytest.approx(truth, abs=0.3)


def test_topologies_whose_weights_underflow_are_in_order_too(posterior):
    dcc = DCC(posterior, Settings(), 0)
    log_evidence = {"L": -5000.0, "SLL": -3000.0, "SSLLL": -10.0, "SLSLL": -4000.0}
    dcc.topologies = {label: SimpleNamespace(draws=[None]) for label in log_evidence}
    dcc.evidence = lambda label: SimpleNamespace(log_evidence=log_evidence[label], error=0.0)
    assert dcc.combine().labels == ["SSLLL", "SLL", "SLSLL", "L"]


def test_draws_follow_the_weights(run):
    *_, idata = run
    labels = idata.sample_stats["topology"].values
    t = idata["topologies"].to_dataset()
    n = labels.size
    for label, weight in zip(t["topology"].values, t["weight"].values, strict=True):
        share = (labels == label).mean()
        assert abs(share - weight) < 4.5 * np.sqrt(weight * (1 - weight) / n) + 1 / n


def test_every_draw_is_a_tree_of_its_topology_with_the_function_it_stands_for(run):
    model, X, _, idata = run
    trees = idata.posterior["mu_forest"].values
    for at in [(0, 0), (3, 7), (7, 249)]:
        assert label_of(trees[at]) == idata.sample_stats["topology"].values[at]
        assert idata.sample_stats["n_leaves"].values[at] == label_of(trees[at]).count("L")
    pmt.check_draws(idata, model)
    [mu] = model.replace_rvs_by_values([model["mu"]])
    mu = model.compile_fn(mu, inputs=model.value_vars, on_unused_input="ignore")
    point = {**model.initial_point(), "mu_forest": trees[0, 0]}
    np.testing.assert_allclose(idata.posterior["mu"].values[0, 0], mu(point), rtol=1e-12)


def test_the_function_is_learnt(run):
    _, X, y, idata = run
    mu = idata.posterior["mu"].mean(("chain", "draw")).values
    truth = np.where(X[:, 0] > 0.4, 1.0, -1.0) - np.where(X[:, 0] > 0.75, 1.0, 0.0)
    assert np.sqrt(np.mean((mu - truth) ** 2)) < 0.4
    assert set(idata.observed_data) == {"y"} and set(idata.constant_data) == {"mu_X"}


def test_the_result_is_saved_and_read_again(run, tmp_path):
    *_, idata = run
    idata.to_netcdf(tmp_path / "run.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "run.nc") as again:
        assert (
            again["topologies"]["topology"].values[0] == idata["topologies"]["topology"].values[0]
        )
        np.testing.assert_array_equal(
            again["sample_stats"]["topology"], idata["sample_stats"]["topology"]
        )


def test_visits_and_chains_are_accounted_for(run):
    *_, idata = run
    t = idata["topologies"].to_dataset()
    assert t["visits"].sum() == 14 and (t["visits"] > 0).all()
    assert (t["warm_ups"] >= 8).all() and (t["gradients"] > 8 * 150).all()
    assert t["proposals"].sum() <= 100 + 14


@pytest.mark.full
def test_classes_are_learnt():
    model, X, y = classification(n=60, classes=2)
    with model:
        idata = pmt.sample_dcc(3, 50, 2, random_seed=1, **{**SMALL, "tune": 60})
    p = idata.posterior["p"].mean(("chain", "draw")).values
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (p.argmax(axis=1) == y).mean() > 0.75


@pytest.mark.full
def test_a_stump_without_parameters_has_its_exact_evidence():
    """Dirichlet leaf, no other variables: eq. 8 with one leaf, and nothing to sample."""
    model, _, y = classification(n=60, classes=2)
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        posterior = posterior_of(model)
    dcc = DCC(posterior, Settings(chains=2, tune=20, local_draws=5, threshold=0), 1)
    while "L" not in dcc.topologies or not dcc.topologies["L"].draws:
        dcc.iterate()
    counts = np.bincount(y, minlength=2)
    exact = special.gammaln(counts + 1).sum() - special.gammaln(counts.sum() + 2)
    assert dcc.evidence("L").log_evidence == pytest.approx(exact)


def small_dcc(seed, posterior, **settings):
    dcc = DCC(posterior, Settings(chains=2, tune=40, local_draws=10, **settings), seed)
    labels = [dcc.iterate() for _ in range(4)]
    return dcc, labels


def test_same_seed_same_run_other_seed_another(posterior):
    a, labels = small_dcc(1, posterior)
    b, again = small_dcc(1, posterior)
    c, _ = small_dcc(2, posterior)
    assert labels == again
    for label, topology in a.topologies.items():
        for x, y in zip(topology.draws, b.topologies[label].draws, strict=True):
            np.testing.assert_array_equal(x, y)
    assert not np.array_equal(a.topologies["SLL"].draws[0], c.topologies["SLL"].draws[0])


def test_a_run_is_warmed_up_once_and_goes_on_from_its_state(posterior):
    whole, labels = small_dcc(3, posterior)
    half = DCC(posterior, whole.settings, 3)
    first = [half.iterate() for _ in range(2)]
    warm = {k: [c.warm_ups for c in t.chains] for k, t in half.topologies.items()}
    rest = DCC.resume(posterior, whole.settings, half.state())
    assert first + [rest.iterate() for _ in range(2)] == labels
    for label, topology in rest.topologies.items():
        for x, y in zip(topology.draws, whole.topologies[label].draws, strict=True):
            np.testing.assert_array_equal(x, y)
        if label in warm:
            assert [c.warm_ups for c in topology.chains] == warm[label]


def test_a_run_goes_on_with_as_many_chains_as_it_has(posterior):
    settings = Settings(chains=2, local_draws=5, tune=20, threshold=0, initial_trees=2)
    dcc = DCC(posterior, settings, 5)
    dcc.iterate()
    with pytest.raises(ValueError, match=r"chains=3: this run has 2 chains a topology"):
        DCC.resume(posterior, settings._replace(chains=3), dcc.state())


def test_an_interrupted_run_keeps_what_was_finished(run, monkeypatch):
    """At a visit: the topologies known till then are the result."""
    visits, original, at = [], Runner.__call__, 2

    def interrupted(self, task, each):
        if each and task is visit:
            visits.append(each)
            if len(visits) == at:
                raise KeyboardInterrupt
        return original(self, task, each)

    monkeypatch.setattr(Runner, "__call__", interrupted)
    with run[0], pytest.warns(UserWarning, match=f"of {at - 1} global iterations instead of 9"):
        idata = pmt.sample_dcc(9, 20, 2, random_seed=1, **{**SMALL, "tune": 40})
    assert idata["topologies"]["visits"].sum() == at - 1 == idata.attrs["iterations"]
    assert idata.posterior["mu"].sizes["draw"] == 20


def test_a_run_interrupted_before_anything_was_found_has_no_result(run, monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(DCC, "iterate", interrupted)
    with run[0], pytest.raises(KeyboardInterrupt):
        pmt.sample_dcc(9, 20, 2, **SMALL)


def test_an_iteration_interrupted_while_topologies_warm_up_can_be_made_again(
    posterior, monkeypatch
):
    def interrupted(task, each):
        raise KeyboardInterrupt

    dcc, labels = small_dcc(1, posterior)
    dcc.search.count("SLL")
    dcc.search.threshold = 0
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(dcc, "run", interrupted)
        dcc.iterate()
    assert dcc.iterate() in dcc.topologies
    assert set(dcc.search.active) == set(dcc.topologies)


def test_a_full_active_set_does_not_end_a_run(posterior):
    dcc, labels = small_dcc(1, posterior, max_active=1)
    assert len(set(labels)) == 1 and len(dcc.topologies) == 1


@pytest.mark.full
def test_chains_in_other_processes_are_the_same(posterior):
    """Few steps: code compiled in another process may round otherwise, and chains are chaotic."""
    chain = warm_up(posterior, "SLL", np.random.default_rng(1), 40).chain
    assert isinstance(chain, LocalChain)
    each = [("SLL", chain, 2), ("SLL", chain, 2)]
    here, there = Runner(posterior, 1)(visit, each), Runner(posterior, 2)(visit, each)
    for a, b in zip(here, there, strict=True):
        np.testing.assert_allclose(a.draws, b.draws, rtol=1e-6)


def test_sharpness_falls_between_75_and_850_of_1000():
    h = (0.5, 0.02)
    levels = [sharpness(i, 1000, h) for i in range(1000)]
    assert levels[0] == levels[75] == 0.5
    assert levels[850] == levels[999] == pytest.approx(0.02)
    np.testing.assert_allclose(np.diff(levels[75:851]), (0.02 - 0.5) / 775)


WRONG = {"chains": 0, "local_draws": 1, "tune": 5, "importance_draws": 0, "threshold": -1,
         "max_active": 0, "initial_trees": 0, "exploration": 1.5,
         "optimism": 0.0, "screening": -0.1}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_settings_out_of_range_are_named(name):
    with pytest.raises(ValueError, match=f"{name}="):
        check_settings(**RUN._asdict() | {name: WRONG[name]})


@pytest.mark.parametrize("name", ["iterations", "draws", "cores"])
def test_numbers_of_the_run_are_named(run, name):
    with run[0], pytest.raises(ValueError, match=f"{name}="):
        pmt.sample_dcc(**{**SMALL, name: 0})


@pytest.mark.filterwarnings("ignore:Numba will use object mode")
def test_improper_priors_are_refused():
    with pm.Model() as model:
        mu = pmt.SoftDecisionTree("mu", np.eye(3))
        pm.Normal("y", mu + pm.Flat("a"), 1.0, observed=np.zeros(3))
    posterior = posterior_of(model)
    posterior.set_topology("L")
    with pytest.raises(ValueError, match="proper priors"):
        posterior.draw_prior(np.random.default_rng(1), 1)
