"""Files without training rows, and what of them still answers."""

import pickle

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from support.small_models import FAST

import pymc_trees as pmt
from pymc_trees.posterior import draws
from pymc_trees.posterior.declarations import declared_group
from pymc_trees.posterior.saving import without_rows

pytestmark = pytest.mark.usefixtures("quick_compile")
N = 37
_rng = np.random.default_rng(5)
X = pd.DataFrame({"a": _rng.random(N), "town": _rng.choice(["Bonn", "Genf"], N)})
Y = X["a"].to_numpy() + _rng.normal(0, 0.3, N)
RUN = {"chains": 2, "cores": 1, "random_seed": 1, **FAST}


@pytest.fixture(scope="module")
def fitted():
    with pm.Model(coords={"person": [f"person {i}" for i in range(N)]}) as model:
        mu = pmt.BART("mu", pmt.Data("X", X), Y, m=4, dims="person")
        own = pm.Normal("own", 0, 0.1, shape=N)
        level = pm.Normal("level", 0, 1, shape=2)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", mu + own + level[0], sigma, observed=Y, shape=mu.shape)
        idata = pm.sample(4, tune=5, **RUN)
        pm.compute_log_likelihood(idata, progressbar=False)
        idata.update(pm.sample_posterior_predictive(idata, progressbar=False))
    return model, idata


@pytest.fixture
def without(fitted, tmp_path):
    return pmt.open(pmt.save(fitted[1], tmp_path / "fit.nc", training_data=False))


def holds(tree, numbers):
    """Names of variables and coordinates with one of some numbers, or a text with one of them."""
    found = []
    for node in tree.subtree:
        for name, array in node.variables.items():
            values = array.values
            if values.dtype.kind == "f" and np.isin(values, numbers).any():
                found.append(name)
            if values.dtype.kind in "OU" and any("person" in str(v) for v in values.flat):
                found.append(name)
    return sorted(set(found))


def test_no_row_is_in_the_file(fitted, without):
    numbers = np.concatenate([X["a"], Y])
    assert {"X", "y", "person"} <= set(holds(fitted[1], numbers))
    assert holds(without, numbers) == []
    assert set(without.children) == {"posterior", "sample_stats", "forests"}
    assert set(without["posterior"].data_vars) == {"mu_forest", "level", "sigma"}
    for node in without.subtree:
        assert N not in node.sizes.values()
    for name in ("mu_forest", "level", "sigma"):
        np.testing.assert_array_equal(without["posterior"][name], fitted[1]["posterior"][name])


def test_what_it_answers_and_what_not(fitted, without):
    model, idata = fitted
    new = pd.DataFrame({"a": [0.1, 0.8], "town": ["Genf", "Bonn"]})
    expected = pmt.predictions(idata, model, new, var_name="mu", progressbar=False)
    found = pmt.predictions(without, model, new, var_name="mu", progressbar=False)
    np.testing.assert_array_equal(found["prediction"], expected["prediction"])
    predictor = pmt.predictor(without, model, var_names=["mu", "sigma"])
    assert predictor.predict(new).shape == (2,)
    with pytest.raises(ValueError, match="idata: its training rows were left out"):
        pmt.resume(without, model, 2, cores=1, **FAST)
    again = pmt.update(without, model, 2, tune=2, cores=1, random_seed=1, **FAST)
    assert again["posterior"].sizes["draw"] == 2


def test_rows_must_be_known(fitted, tmp_path):
    posterior = xr.DataTree.from_dict({"posterior": fitted[1]["posterior"].to_dataset()})
    with pytest.raises(ValueError, match="idata has neither the group forests nor observed_data"):
        pmt.save(posterior, tmp_path / "fit.nc", training_data=False)
    nested = fitted[1].copy()
    nested["mine/more"] = xr.DataTree(xr.Dataset({"z": ("row", Y)}))
    with pytest.raises(ValueError, match=r"group 'mine' has groups.*del idata\['mine'\]"):
        pmt.save(nested, tmp_path / "fit.nc", training_data=False)
    del nested["mine"]
    pmt.save(nested, tmp_path / "fit.nc", training_data=False)


FEW = {"m": 3, "draws": 4, "tune": 4, "chains": 2, "cores": 1, "progressbar": False}


@pytest.mark.filterwarnings("ignore:R-hat")
@pytest.mark.parametrize("noise", ["forest", "student", "classes"])
def test_an_estimator_predicts_as_before(noise, tmp_path):
    if noise == "classes":
        fitted = pmt.BARTClassifier(random_state=1, **FEW).fit(X, Y > 0.5)
        answers = ("predict", "predict_proba", "sample_proba")
    else:
        fitted = pmt.BARTRegressor(random_state=1, noise=noise, **FEW).fit(X, Y)
        answers = ("predict", "predict_dist")
    fitted.save(tmp_path / "whole.nc")
    fitted.save(tmp_path / "fit.nc", training_data=False)
    with xr.open_datatree(tmp_path / "fit.nc", engine="h5netcdf") as stored:
        assert holds(stored, np.concatenate([X["a"], Y])) == []
    again = type(fitted).load(tmp_path / "fit.nc")
    again.save(tmp_path / "again.nc")
    third = type(fitted).load(tmp_path / "again.nc")
    for other in (again, pickle.loads(pickle.dumps(again)), third):
        for name in answers:
            found, expected = (getattr(e, name)(X) for e in (other, fitted))
            if name == "predict_dist":
                found, expected = found.ppf(0.3), expected.ppf(0.3)
            np.testing.assert_array_equal(found, expected)
        assert other.predictor(draws=2).predict(X).shape == (N,)
        with pytest.raises(ValueError, match="training rows of this BART.* were left out"):
            _ = other.model_
    assert type(fitted).load(tmp_path / "whole.nc").model_ is not None


def test_effects_need_the_rows(tmp_path):
    treated = np.arange(N) % 2
    forest = pmt.causal.BayesianCausalForest(
        random_state=1, draws=2, tune=2, chains=1, cores=1, progressbar=False
    )
    forest.fit(X[["a"]], Y, treated, propensity=np.full(N, 0.5))
    with pytest.raises(ValueError, match="training_data=False: a BayesianCausalForest"):
        forest.save(tmp_path / "fit.nc", training_data=False)
    forest.save(tmp_path / "fit.nc")


def test_a_soft_tree_and_its_topologies_stay_whatever_their_sizes():
    """Nodes, fields and topologies are as many as rows; what is no tree in every draw goes."""
    n, p = 7, 4
    with pm.Model() as model:
        leaf = pmt.NormalLeaf(0, 1)
        pmt.SoftDecisionTree("mu", np.ones((n, p)), alpha=0.5, beta=3.0, leaf=leaf, max_nodes=n)
    trees = pm.draw(model["mu_forest"], 4, random_seed=1)[None]
    assert trees.shape == (1, 4, n, n) and len({*trees[0, :, 1, 0]}) > 1
    spoilt = np.where(np.arange(4)[:, None, None] < 3, trees, 0.5)
    dims = ("chain", "draw", "a", "b")
    drawn = xr.Dataset({"mu_forest": (dims, trees)}).transpose("draw", "a", "chain", "b")
    for name, values in {"mu": trees[..., 1], "zeros": 0.0 * trees, "spoilt": spoilt}.items():
        drawn[name] = dims[: values.ndim], values
    groups = {"posterior": drawn, "warmup_posterior": drawn}
    groups["topologies"] = xr.Dataset({"weight": ("topology", np.ones(n))})
    groups["observed_data"] = xr.Dataset({"y": ("row", np.zeros(n))})
    left = without_rows(xr.DataTree.from_dict(groups))
    assert {name: [*node.data_vars] for name, node in left.children.items()} == {
        "posterior": ["mu_forest"],
        "warmup_posterior": ["mu_forest"],
        "topologies": ["weight"],
    }


# ----------------------------------------------------------------- Draws that are read in each call


def test_one_warning_of_lazy_draws_that_are_slow(fitted, tmp_path, monkeypatch):
    pytest.importorskip("dask")
    model, idata = fitted
    path = pmt.save(idata, tmp_path / "fit.nc")
    monkeypatch.setattr(draws, "_slow", set())

    def predict(tree):
        return pmt.predictions(tree, model, X[:2], var_name="mu", progressbar=False)

    with xr.open_datatree(path, engine="h5netcdf", chunks={}) as lazy:
        predict(lazy)  # not slow
        monkeypatch.setattr(draws, "SLOW", 0.0)
        with pytest.warns(UserWarning, match=r"mu_forest are read lazily.*pymc_trees.open") as told:
            predict(lazy)
            predict(lazy)
        assert len(told) == 1
    monkeypatch.setattr(draws, "_slow", set())
    with xr.open_datatree(path, engine="h5netcdf") as kept:
        predict(kept)  # read once, and kept
        monkeypatch.setattr(draws, "HELD", 100)
        with pytest.warns(UserWarning, match="read lazily"):
            predict(xr.open_datatree(path, engine="h5netcdf"))
    monkeypatch.setattr(draws, "_slow", set())
    monkeypatch.setattr(draws, "HELD", 2**30)
    predict(pmt.open(path))


# ----------------------------------------------------------------------- Models of several outputs


@pytest.mark.parametrize(("declares", "kept"), [(True, {"s"}), (False, set())])
def test_parameters_of_outputs_stay_where_the_number_of_rows_is_declared(declares, kept):
    n_outputs = 3
    with pm.Model() as model:
        f = pmt.BART("f", X, m=2, leaf=pmt.NormalLeaf(0.0, 1.0), shape=(n_outputs, N))
        own, s = pm.Normal("own", shape=N), pm.HalfNormal("s", shape=n_outputs)
        pm.Normal("y", f + own, s[:, None], observed=np.zeros((n_outputs, N)))
        idata = pm.sample_prior_predictive(2, random_seed=1)
    groups = {"posterior": idata["prior"].to_dataset()}
    groups["observed_data"] = idata["observed_data"].to_dataset()
    if declares:
        groups["forests"] = declared_group(model)
    left = without_rows(xr.DataTree.from_dict(groups))["posterior"].data_vars
    assert {name for name in left if "forest" not in name} == kept
