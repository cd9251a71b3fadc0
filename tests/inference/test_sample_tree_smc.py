"""`sample_tree_smc`: evidence of a whole model, chains, backends, refusals, use of the result."""

import warnings

import arviz_stats as azs
import joblib
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from support import oracle as o
from support.naive.laws import PROBLEMS, leaf_of

import pymc_trees as pmt
from pymc_trees.inference.tree_smc import sample_tree_smc as front
from pymc_trees.inference.tree_smc.sample_tree_smc import choose_draws

pytestmark = pytest.mark.usefixtures("quick_compile")
PROBLEM = PROBLEMS["three_columns"]
TREE = {k: PROBLEM.prior[k] for k in ("alpha", "beta")}
QUIET = {"progressbar": False, "cores": 1}


def classes_model():
    with pm.Model() as model:
        p = pmt.DecisionTree(
            "p",
            PROBLEM.X,
            split_prior=PROBLEM.prior.get("split_prior"),
            leaf=pmt.DirichletLeaf(PROBLEM.alpha_total, PROBLEM.n_classes),
            **TREE,
        )
        pm.Categorical("y", p=p, observed=PROBLEM.labels, shape=p.shape[:1])
    return model


def exact_evidence(leaf):
    return o.dynamic_posterior(PROBLEM.X, leaf_of(PROBLEM, leaf), **PROBLEM.prior).log_evidence


@pytest.fixture(scope="module")
def fitted(quick_compile):
    """One run of 4 islands of 2,000 particles."""
    model = classes_model()
    with model:
        idata = pmt.sample_tree_smc(2_000, islands=4, random_seed=3, **QUIET)
    return model, idata


def test_evidence_of_classes(fitted):
    """The sd of an island's log evidence is 0.01 (2,000 particles); 0.05 is five of them."""
    _, idata = fitted
    log_z = idata.sample_stats["log_marginal_likelihood"]
    assert log_z.dims == ("chain",)
    np.testing.assert_allclose(log_z, exact_evidence("dirichlet"), atol=0.05)
    assert idata.attrs["log_marginal_likelihood"] == pytest.approx(
        np.log(np.mean(np.exp(log_z.to_numpy())))
    )


def test_posterior_of_classes(fitted):
    """Probabilities by tree averaging: 8,000 draws of some 4,000 trees, standard error 0.005."""
    _, idata = fitted
    leaf = PROBLEM.dirichlet()
    exact = o.dynamic_posterior(PROBLEM.X, leaf, leaf_moments=leaf.moments, **PROBLEM.prior)
    p = idata.posterior["p"]
    assert p.shape == (4, 2_000, PROBLEM.n, PROBLEM.n_classes)
    np.testing.assert_allclose(p.mean(("chain", "draw")), exact.mean, atol=0.025)
    counts = idata.sample_stats["n_leaves"].to_numpy().ravel()
    for k, share in exact.leaf_counts.items():
        assert abs((counts == k).mean() - share) < 0.03


def test_statistics(fitted):
    _, idata = fitted
    stats = idata.sample_stats
    np.testing.assert_allclose(np.exp(stats["log_weights"]).sum("particle_number"), 1.0)
    assert np.array_equal(stats["island"], np.arange(4)[:, None] * np.ones((1, 2_000)))
    splits = stats["variable_inclusion"].sum("column")
    assert np.array_equal(splits + 1, stats["n_leaves"])
    ess = stats["stage_ess"].to_numpy()
    assert np.nanmax(ess) <= 2_000 and np.isfinite(ess[:, 0]).all()
    assert azs.summary(idata, var_names=["p"])["r_hat"].astype(float).max() < 1.05


def test_save_load_predict(fitted, tmp_path):
    model, idata = fitted
    idata.to_netcdf(tmp_path / "smc.nc", engine="h5netcdf")
    loaded = xr.open_datatree(tmp_path / "smc.nc", engine="h5netcdf")
    assert loaded.attrs["log_marginal_likelihood"] == idata.attrs["log_marginal_likelihood"]
    rows = np.array([[0.1, 0.2, 0.3], [2.0, 1.0, 0.0]])
    new = classes_model()
    predictions = []
    for m, draws in ((model, idata), (new, loaded)):
        with m:
            pm.set_data({"p_X": rows})
            predictive = pm.sample_posterior_predictive(
                draws, var_names=["p"], predictions=True, random_seed=1, progressbar=False
            )
            pm.set_data({"p_X": PROBLEM.X})
        predictions.append(predictive.predictions["p"].to_numpy())
    assert predictions[0].shape == (4, 2_000, 2, 3)
    np.testing.assert_array_equal(*predictions)


@pytest.mark.full
def test_evidence_of_a_whole_model():
    """A slope, an offset, an sd per row, and a term that the tree does not enter."""
    slope, offset = -2.0, 0.7
    sd = np.linspace(0.5, 1.0, PROBLEM.n)
    with pm.Model() as model:
        f = pmt.DecisionTree(
            "f",
            PROBLEM.X,
            split_prior=PROBLEM.prior.get("split_prior"),
            leaf=pmt.NormalLeaf(PROBLEM.mean, PROBLEM.sd),
            **TREE,
        )
        y = slope * PROBLEM.y + offset
        pm.Normal("y", slope * f + offset, abs(slope) * sd, observed=y)
        pm.Normal("z", 0.0, 2.0, observed=1.0)
    leaf = o.NormalLeaf(PROBLEM.y, sd, PROBLEM.mean, PROBLEM.sd)
    exact = o.dynamic_posterior(PROBLEM.X, leaf, **PROBLEM.prior).log_evidence
    exact += -PROBLEM.n * np.log(abs(slope)) - 0.5 * np.log(2 * np.pi * 4) - 1 / 8
    with model:
        idata = pmt.sample_tree_smc(
            2_000, islands=2, random_seed=5, proposal="optimal", var_names=["f_forest"], **QUIET
        )
    assert list(idata.posterior.data_vars) == ["f_forest"]
    np.testing.assert_allclose(idata.sample_stats["log_marginal_likelihood"], exact, atol=0.03)


@pytest.mark.full
def test_every_backend_gives_the_same_draws():
    draws = []
    with classes_model():
        for backend, cores in (("sequential", 1), ("threading", 2), ("loky", 2)):
            with joblib.parallel_config(backend):
                idata = pmt.sample_tree_smc(
                    40, islands=3, cores=cores, random_seed=7, progressbar=False
                )
            draws.append(idata)
    for other in draws[1:]:
        np.testing.assert_array_equal(draws[0].posterior["p"], other.posterior["p"])
        np.testing.assert_array_equal(
            draws[0].sample_stats["log_weights"], other.sample_stats["log_weights"]
        )
    with classes_model():
        idata = pmt.sample_tree_smc(40, islands=3, random_seed=8, **QUIET)
    assert not np.array_equal(draws[0].posterior["p"], idata.posterior["p"])


def test_islands_by_evidence():
    """Shares of the pool are those of the evidence, and no draw is used twice before all are."""
    rng = np.random.default_rng(0)
    log_z = np.log([0.1, 0.6, 0.3]) - 700.0
    island, number = choose_draws(rng, "evidence", log_z, 100)
    assert island.shape == number.shape == (3, 100)
    counts = np.bincount(island.ravel(), minlength=3)
    assert np.all(np.abs(counts - [30, 180, 90]) <= 1)
    uses = np.bincount(number[island == 1], minlength=100)
    assert set(uses) == {1, 2}
    assert abs((island[0] == 1).mean() - 0.6) < 0.2  # chains are mixtures, not islands
    with classes_model():
        idata = pmt.sample_tree_smc(50, islands=3, combine="evidence", random_seed=7, **QUIET)
    shares = np.exp(idata.sample_stats["log_marginal_likelihood"].to_numpy())
    counts = np.bincount(idata.sample_stats["island"].to_numpy().ravel(), minlength=3)
    assert np.all(np.abs(counts - 150 * shares / shares.sum()) <= 1)


def test_interruption_keeps_complete_islands(monkeypatch):
    done = []

    def interrupted(*arguments):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(1)
        return run(*arguments)

    run = front.run_island
    monkeypatch.setattr(front, "run_island", interrupted)
    with classes_model(), pytest.warns(UserWarning, match="2 of 4 islands"):
        idata = pmt.sample_tree_smc(30, islands=4, random_seed=1, **QUIET)
    assert idata.posterior.sizes["chain"] == 2


@pytest.mark.parametrize(
    "options, words",
    [
        ({"particles": 0}, "particles=0"),
        ({"islands": True}, "islands=True"),
        ({"proposal": "best"}, "prior.*empirical.*optimal"),
        ({"expansion": "depth"}, "node.*lowest.*layer"),
        ({"resampling": "none"}, "multinomial.*residual"),
        ({"combine": "both"}, "average.*evidence"),
        ({"ess_threshold": 1.5}, "ess_threshold=1.5"),
        ({"max_stages": 0}, "max_stages=0"),
        ({"cores": 0}, "cores=0"),
        ({"var_names": ["q"]}, "p_forest"),
    ],
)
def test_bad_settings(options, words):
    with classes_model(), pytest.raises(ValueError, match=words):
        pmt.sample_tree_smc(**({"particles": 10} | QUIET | options))


def test_out_of_stages_and_out_of_nodes():
    with classes_model(), pytest.raises(RuntimeError, match=r"max_stages=1.*larger max_stages"):
        pmt.sample_tree_smc(20, islands=1, max_stages=1, random_seed=1, **QUIET)
    with pm.Model():
        p = pmt.DecisionTree("p", PROBLEM.X, leaf=pmt.DirichletLeaf(1.0, 3), max_nodes=3)
        pm.Categorical("y", p=p, observed=PROBLEM.labels)
        with pytest.raises(RuntimeError, match=r"max_nodes=3.*max_nodes=6"):
            pmt.sample_tree_smc(100, islands=1, random_seed=1, **QUIET)


def refused(kind):
    X, y = PROBLEM.X, PROBLEM.y
    with pm.Model() as model:
        if kind == "sum":
            f = pmt.BART("f", X, y, m=3)
            pm.Normal("y", f, 1.0, observed=y)
        elif kind == "free":
            f = pmt.DecisionTree("f", X, y)
            pm.Normal("y", f, pm.HalfNormal("sigma"), observed=y)
        elif kind == "none":
            pm.Normal("x")
        elif kind == "two":
            f = pmt.DecisionTree("f", X, y) + pmt.DecisionTree("g", X, y)
            pm.Normal("y", f, 1.0, observed=y)
        elif kind == "soft":
            pm.Normal("y", pmt.SoftDecisionTree("f", X, y), 1.0, observed=y)
        elif kind == "poisson":
            pm.Poisson("y", pm.math.exp(pmt.DecisionTree("f", X, y)), observed=PROBLEM.labels)
    return model


@pytest.mark.parametrize(
    "kind, words",
    [
        ("sum", "sum of 3 trees.*ParticleGibbs"),
        ("free", r"'sigma'.*Observe.*log_marginal_likelihood"),
        ("none", "one DecisionTree; this one has 0"),
        ("two", "one DecisionTree; this one has 2"),
        ("soft", "sample_dcc"),
        ("poisson", "integrate out"),
    ],
)
def test_refused_models(kind, words):
    with refused(kind), pytest.raises((ValueError, NotImplementedError), match=words):
        with warnings.catch_warnings():
            pmt.sample_tree_smc(10, **QUIET)
