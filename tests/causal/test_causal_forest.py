"""Causal forests: the models that are built, and effects as differences of their functions."""

import json
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression

import pymc_trees as pmt
from pymc_trees import causal
from pymc_trees.causal import forest as causal_forest
from pymc_trees.distributions.data.table import read
from pymc_trees.distributions.tree_variable import evenly_spaced
from pymc_trees.estimators import base as estimators_base
from pymc_trees.estimators.models import residual_sd
from pymc_trees.posterior.goals import ENTRIES, worst

pytestmark = [
    pytest.mark.usefixtures("quick_compile"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    # NUTS tries long steps while it tunes.
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),
]
N = 60
RNG = np.random.default_rng(7)
X = RNG.random((N, 2))
P = 0.25 + 0.5 * X[:, 0]
Z = (RNG.random(N) < P).astype(int)
DOSE = X[:, 0] + RNG.normal(0, 0.5, N)
SCHOOL = RNG.choice(["a", "b", "c"], N)
Y = 3 * X[:, 0] + Z * (1 + X[:, 1]) + RNG.normal(0, 0.3, N)
SMALL = {"m": 6, "m_effect": 4, "draws": 8, "tune": 10, "chains": 2, "cores": 1, "random_state": 3}


@cache
def forest(forests="two", z="binary", group=False):
    given = {"propensity": P, "group": SCHOOL if group else None}
    treatment = Z if z == "binary" else DOSE
    return causal.BayesianCausalForest(forests=forests, **SMALL).fit(X, Y, treatment, **given)


def by_hand(forests, z, group):
    """The model as a user would write it (Hahn et al. 2020, section 5; Hill 2011)."""
    treatment = (Z if z == "binary" else DOSE).astype(float)
    columns = np.column_stack([X, treatment])
    off = Y - LinearRegression().fit(columns, Y).predict(columns)
    # To the last bit, which steps of NUTS multiply.
    left = residual_sd(read(columns), Y)
    assert left == pytest.approx(np.sqrt(np.sum(off**2) / (N - 4)), rel=1e-12)
    sd, centre = Y.std(), (Y.max() + Y.min()) / 2
    names, codes = np.unique(SCHOOL, return_inverse=True)
    with pm.Model(coords={"group": names}) as model:
        if forests == "two":
            covariates, joined = pmt.Data("X", X), pmt.Data("X_prognosis", np.column_stack([X, P]))
            leaf = pmt.NormalLeaf(0.0, 1 / np.sqrt(6))
            prognosis = pmt.BART("prognosis", joined, m=6, leaf=leaf)
            scale = pm.HalfCauchy("scale_prognosis", 2 * sd, initval=sd)
            per_unit = 1.0 if z == "binary" else DOSE.std()
            leaf = pmt.NormalLeaf(0.0, sd / 0.6745 / per_unit / 2)
            tau = pmt.BART("tau", covariates, m=4, alpha=0.25, beta=3, leaf=leaf)
            if z == "binary":
                b = pm.Normal("b", 0, np.sqrt(0.5), shape=2, initval=np.array([-0.5, 0.5]))
                share = b[Z] * tau
            else:
                share = (DOSE - DOSE.mean()) * tau
            mean = Y.mean() + scale * prognosis + share
        elif forests == "arms":
            joined = np.column_stack([X, P])
            intercept = pm.Normal("intercept", 0, pm.HalfNormal("sd_group", sd), dims="group")
            for arm, own in (("control", Z == 0), ("treated", Z == 1)):
                rows = np.flatnonzero(own)
                f = pmt.BART(f"f_{arm}", joined[rows], Y[rows], m=6)
                noise = pm.HalfNormal(f"sigma_{arm}", residual_sd(read(joined[rows]), Y[rows]))
                mean = f + intercept[codes][rows]
                pm.Normal(f"y_{arm}", mean, noise, observed=Y[rows])
            return model
        else:
            leaf = pmt.NormalLeaf(centre / 6, (Y.max() - Y.min()) / (4 * np.sqrt(6)))
            inputs = pmt.Data("X", np.column_stack([X, P, treatment]))
            mean = pmt.BART("f", inputs, m=6, leaf=leaf)
        if group:
            mean = (
                mean + pm.Normal("intercept", 0, pm.HalfNormal("sd_group", sd), dims="group")[codes]
            )
        pm.Normal("y", mean, pm.HalfNormal("sigma", left), observed=Y)
    return model


CASES = [
    ("two", "binary", False),
    ("two", "dose", True),
    ("one", "binary", True),
    ("one", "dose", False),
    ("arms", "binary", True),
]


@pytest.mark.parametrize(("forests", "z", "group"), CASES)
def test_draws_are_those_of_the_model_written_by_hand(forests, z, group):
    ours = forest(forests, z, group).idata_.posterior
    with by_hand(forests, z, group):
        options = {"draws": 8, "tune": 10, "chains": 2, "cores": 1, "random_seed": 3}
        drawn = pm.sample(**options, progressbar=False, compute_convergence_checks=False)
    wanted = drawn.posterior
    assert set(ours) == set(wanted)
    for name in [name for name in wanted if not name.endswith("_forest")]:  # which hold times
        np.testing.assert_allclose(ours[name], wanted[name], rtol=1e-7, atol=1e-9, err_msg=name)


def test_effects_of_two_forests_are_products():
    posterior = forest().idata_.posterior
    b = posterior["b"].to_numpy()
    wanted = (b[..., 1] - b[..., 0])[..., None] * posterior["tau"].to_numpy()
    found = forest().unit_effects()
    assert found.dims == ("chain", "draw", "row")
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    np.testing.assert_allclose(forest().unit_effects((1, 0)), -wanted, rtol=1e-12)
    np.testing.assert_allclose(forest().sate(), wanted.mean(-1), rtol=1e-12)
    np.testing.assert_allclose(forest().satt(), wanted[..., Z == 1].mean(-1), rtol=1e-12)
    assert forest().satt().dims == ("chain", "draw")


def test_the_effect_of_doses_is_linear():
    found = forest("two", "dose", True)
    tau = found.idata_.posterior["tau"].to_numpy()
    np.testing.assert_allclose(found.unit_effects(), tau, rtol=1e-12)
    np.testing.assert_allclose(found.unit_effects((0.5, 2.0)), 1.5 * tau, rtol=1e-12)
    with pytest.raises(ValueError, match="continuous"):
        found.satt()


# PyTensor divides 0 by 0 where new inputs have as many rows as the old, and some cell is 0 in both.
@pytest.mark.filterwarnings("ignore:invalid value encountered in divide:RuntimeWarning")
@pytest.mark.parametrize(("z", "contrast"), [("binary", (0, 1)), ("dose", (0.2, 0.9))])
def test_effects_of_one_forest_are_differences_of_predictions(z, contrast):
    found = forest("one", z, z == "binary")
    f = {}
    model = by_hand("one", z, z == "binary")
    for dose in contrast:
        with model:
            pmt.set_data({"X": np.column_stack([X, P, np.full(N, dose)])})
            drawn = pm.sample_posterior_predictive(found.idata_, var_names=["f"], progressbar=False)
        f[dose] = drawn.posterior_predictive["f"].to_numpy()
    wanted = f[contrast[1]] - f[contrast[0]]
    assert np.abs(wanted).max() > 0
    np.testing.assert_allclose(found.unit_effects(contrast), wanted, rtol=0, atol=1e-10)


def test_effects_of_a_forest_for_each_arm_are_differences_of_the_two():
    found = forest("arms", "binary", True)
    posterior = found.idata_.posterior
    effects = found.unit_effects()
    model = by_hand("arms", "binary", True)
    joined = np.column_stack([X, P])
    for arm, sign in ((0, 1), (1, -1)):
        seen, other = ("f_control", "f_treated") if arm == 0 else ("f_treated", "f_control")
        rows = np.flatnonzero(Z == arm)
        at_own = pmt.predictions(found.idata_, model, joined[rows], var_name=other)["prediction"]
        wanted = sign * (at_own.to_numpy() - posterior[seen].to_numpy())
        np.testing.assert_allclose(effects.to_numpy()[..., rows], wanted, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.unit_effects((1, 0)), -effects, rtol=1e-12)
    np.testing.assert_array_equal(found.unit_effects((1, 1)), 0 * effects)


@pytest.mark.parametrize("forests", ["two", "one", "arms"])
def test_effects_elsewhere(forests):
    found = forest(forests, "binary", forests != "two")
    own = found.cate(X[:5], propensity=P[:5])
    np.testing.assert_allclose(own, found.unit_effects()[..., :5], rtol=0, atol=1e-10)
    if forests != "two":
        with pytest.raises(ValueError, match="propensity was given to fit"):
            found.cate(X[:5])
        with pytest.raises(ValueError, match=r"propensity has shape \(4,\)"):
            found.cate(X[:5], propensity=P[:4])


def test_a_second_fit_forgets_the_first():
    found = causal.BayesianCausalForest(forests="one", **SMALL).fit(X, Y, Z, group=SCHOOL)
    assert hasattr(found, "propensity_model_") and hasattr(found, "groups_")
    found.fit(X, Y, Z, propensity=P)
    assert not hasattr(found, "propensity_model_") and not hasattr(found, "groups_")
    assert "intercept" not in found.idata_.posterior


def test_warnings_of_the_propensity_say_whose_they_are():
    short = {"m": 5, "draws": 6, "tune": 0, "chains": 2, "cores": 1, "random_state": 1}
    with pytest.warns(ConvergenceWarning) as told:
        causal.propensity(X, Z, **short)
    [message] = [str(one.message) for one in told]
    assert message.startswith("In the model of the propensity: R-hat of f")
    assert "estimator" not in message
    with pytest.warns(ConvergenceWarning) as told:
        forest = causal.BayesianCausalForest(**SMALL | {"draws": 6, "tune": 0, "chains": 2})
        forest.fit(X, Y, Z)
    [message] = [str(one.message) for one in told if "propensity" in str(one.message)]
    assert "plot_convergence(forest.propensity_model_.idata_" in message


def test_an_estimated_propensity_is_that_of_the_classifier():
    given = {"m": 5, "draws": 8, "tune": 10, "chains": 1, "cores": 1, "random_state": 2}
    wanted = pmt.BARTClassifier(**given).fit(X, Z).predict_proba(X)[:, 1]
    np.testing.assert_array_equal(causal.propensity(X, Z, **given), wanted)
    expected = pmt.BARTRegressor(noise="constant", **given).fit(X, DOSE).predict(X)
    np.testing.assert_array_equal(causal.propensity(X, DOSE, **given), expected)
    found = causal.BayesianCausalForest(forests="one", **SMALL).fit(X, Y, Z)
    np.testing.assert_array_equal(found.propensity_model_.predict_proba(X)[:, 1], found.propensity_)
    np.testing.assert_allclose(
        found.cate(X), found.unit_effects(), rtol=0, atol=1e-10
    )  # by the same propensity


def test_frames_files_and_clones(tmp_path):
    frame = pd.DataFrame(X, columns=["age", "score"])
    frame["town"] = RNG.choice(["oslo", "rome"], N)
    frame.loc[::9, "age"] = np.nan
    settings = causal.BayesianCausalForest(**SMALL)
    found = clone(settings).fit(frame, Y, Z, propensity=P, group=SCHOOL)
    found.save(tmp_path / "forest.nc")
    again = causal.BayesianCausalForest.load(tmp_path / "forest.nc")
    np.testing.assert_array_equal(again.unit_effects(), found.unit_effects())
    np.testing.assert_array_equal(again.cate(frame[:4]), found.cate(frame[:4]))
    np.testing.assert_array_equal(again.propensity_, P)
    assert list(again.groups_) == ["a", "b", "c"]
    assert list(again.model_.coords["group"]) == ["a", "b", "c"]
    effect = pmt.partial_dependence(found.idata_, found.model_, "score", var_name="effect")
    assert effect["average"].sizes["draw"] == 8


@pytest.mark.parametrize("z", ["binary", "dose"])
def test_the_model_of_the_propensity_comes_back(z, tmp_path):
    treatment = Z if z == "binary" else DOSE
    found = causal.BayesianCausalForest(forests="one", **SMALL).fit(X, Y, treatment)
    found.save(tmp_path / "forest.nc")
    again = causal.BayesianCausalForest.load(tmp_path / "forest.nc")
    np.testing.assert_array_equal(again.cate(X[:5]), found.cate(X[:5]))
    model = again.propensity_model_
    assert type(model) is type(found.propensity_model_)
    np.testing.assert_array_equal(model.predict(X), found.propensity_model_.predict(X))
    again.save(tmp_path / "again.nc")
    twice = causal.BayesianCausalForest.load(tmp_path / "again.nc")
    np.testing.assert_array_equal(twice.cate(X[:5]), found.cate(X[:5]))
    with pytest.raises(ValueError, match="draws=0"):
        twice.set_params(draws=0).fit(X, Y, treatment, propensity=P)
    assert not hasattr(twice, "propensity_model_") and not hasattr(twice, "idata_")


def test_a_known_effect_is_found():
    """Within 4 posterior sds, which are below a quarter of it; the naive difference is not."""
    rng = np.random.default_rng(12)
    x = rng.random((400, 2))
    p = 0.1 + 0.8 * x[:, 0]
    z = (rng.random(400) < p).astype(int)
    effect = 1.0 + (x[:, 1] > 0.5)
    y = 6 * x[:, 0] + effect * z + rng.normal(0, 0.5, 400)
    settings = {"draws": 300, "tune": 300, "chains": 2, "cores": 1, "random_state": 4}
    found = causal.BayesianCausalForest(m=50, m_effect=20, **settings).fit(x, y, z)
    sate = found.sate()
    sd = float(sate.std())
    assert sd < 0.2
    assert abs(float(sate.mean()) - effect.mean()) < 4 * sd
    assert abs(y[z == 1].mean() - y[z == 0].mean() - effect.mean()) > 1.0
    mean = found.unit_effects().mean(("chain", "draw")).to_numpy()
    assert mean[effect == 2].mean() - mean[effect == 1].mean() > 0.5


def brute_overlap(p, z):
    return np.array(
        [not (min(p[z != a]) <= q <= max(p[z != a])) for q, a in zip(p, z, strict=True)]
    )


def test_overlap_counts_rows_without_counterpart():
    found = causal.overlap(P, Z, SCHOOL)
    np.testing.assert_array_equal(found["outside"], brute_overlap(P, Z))
    assert 0 < int(found["outside"].sum()) < N
    for name in "abc":
        assert int(found["n_treated"].sel(group=name)) == np.sum((SCHOOL == name) & (Z == 1))
        assert int(found["n_control"].sel(group=name)) == np.sum((SCHOOL == name) & (Z == 0))


@pytest.mark.parametrize("backend", ["none", "matplotlib", "plotly"])
def test_overlap_is_drawn(backend):
    found = causal.overlap(P, Z)
    drawn = pmt.plot_overlap(found, bins=5, backend=backend)
    assert drawn.backend == backend
    if backend == "matplotlib":
        lines = drawn.viz["plot"].to_dataset()["share"].item().lines
        edges = np.histogram_bin_edges(P, 5)
        for line, arm in zip(lines, (Z == 0, Z == 1), strict=True):
            x, y = line.get_data()
            np.testing.assert_allclose(x[::2], edges)
            np.testing.assert_allclose(y[1::2][:-1], np.histogram(P[arm], edges)[0] / arm.sum())


def test_groups_of_one_arm_are_named():
    group = np.where(np.arange(N) < 10, "early", SCHOOL)
    z = np.where(np.arange(N) < 10, 1, Z)
    with pytest.warns(UserWarning, match=r"\['early'\] everybody or nobody"):
        causal.BayesianCausalForest(**SMALL).fit(X, Y, z, propensity=P, group=group)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", "R-hat|.*is up to")
        causal.BayesianCausalForest(**SMALL).fit(X, Y, Z, propensity=P, group=SCHOOL)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"z": np.ones(N)}, "z is 1 in every row"),
        ({"z": Z + 1}, "z holds 1 and 2"),
        ({"z": Z[:5]}, "z has shape"),
        ({"z": np.where(Z, np.nan, 0)}, "z holds missing"),
        ({"y": Y[:5]}, "y has 5 numbers"),
        ({"propensity": P * 3}, "between 0 and 1"),
        ({"propensity": P[:5]}, "propensity has shape"),
        ({"group": SCHOOL[:5]}, "group has shape"),
        ({"settings": {"forests": "three"}}, "forests='three'"),
        ({"settings": {"m_effect": 0}}, "m_effect=0"),
        ({"settings": {"forests": "arms"}, "z": DOSE}, "needs a z of 0 and 1"),
    ],
)
def test_inputs_out_of_range_are_named(given, words):
    rows = {"y": Y, "z": Z, "propensity": P} | given
    settings = SMALL | rows.pop("settings", {})
    with pytest.raises(ValueError, match=words):
        causal.BayesianCausalForest(**settings).fit(X, **rows)


def test_questions_out_of_range_are_named():
    with pytest.raises(ValueError, match="binary, so give 0 and 1"):
        forest().unit_effects((0, 2))
    with pytest.raises(ValueError, match="two treatments"):
        forest().unit_effects(1)
    with pytest.raises(ValueError, match="not binary"):
        causal.overlap(P, DOSE)
    with pytest.raises(ValueError, match=r"causal\.overlap"):
        pmt.plot_overlap(P)
    with pytest.raises(TypeError, match="z must hold numbers"):
        causal.propensity(X, np.where(Z, "yes", "no"))


@pytest.mark.parametrize("forests", ["two", "one", "arms"])
def test_functions_that_are_too_large_to_record_come_from_the_trees(forests, monkeypatch):
    """The answers are those of a fit that records them, and so is what R-hat looks at."""
    recorded = forest(forests)
    monkeypatch.setattr(estimators_base, "MOST_RECORDED", 0)
    monkeypatch.setattr(causal_forest, "BLOCK", 200)  # means in several blocks
    lean = clone(recorded).fit(X, Y, Z, propensity=P)
    by_row = {name for name, v in recorded.idata_["posterior"].items() if N in v.shape}
    by_row |= {"f_control", "f_treated"} & recorded.idata_["posterior"].keys()
    assert by_row and not by_row & lean.idata_["posterior"].keys()
    np.testing.assert_allclose(lean.unit_effects(), recorded.unit_effects(), rtol=1e-12)
    for name in ("sate", "satt"):
        mean = getattr(lean, name)()
        np.testing.assert_allclose(mean, getattr(recorded, name)(), rtol=1e-12)
    effects = recorded.unit_effects()
    np.testing.assert_allclose(lean.sate(), effects.mean("row"), rtol=1e-12)
    np.testing.assert_allclose(lean.satt(), effects.isel(row=np.flatnonzero(Z)).mean("row"))
    np.testing.assert_array_equal(lean.cate(X, propensity=P), recorded.cate(X, propensity=P))
    some = np.array([0, 7, 30])
    np.testing.assert_allclose(lean._watched(some), recorded._watched(some), rtol=1e-12)


@pytest.mark.parametrize("forests", causal_forest.FORESTS)
def test_a_fit_that_ends_by_itself(forests):
    """The effects are judged, which are computed from the trees, and draws are those of one run."""
    until = {"ess": 4, "r_hat": 10.0, "max_time": "10min"}
    ended = causal.BayesianCausalForest(forests=forests, until=until, **SMALL)
    assert clone(ended).get_params()["until"] == until
    ended.fit(X, Y, Z, propensity=P)
    said = json.loads(ended.idata_.attrs["sample_until"])
    reached = said["reached"]["effect"]
    assert said["ended"] == "reached" and said["asked"]["of"] == ["effect"]
    draws = ended.unit_effects().to_numpy()
    assert reached["r_hat"] == pytest.approx(worst(draws[..., evenly_spaced(N, ENTRIES)])[0])
    same = SMALL | {"draws": ended.idata_.posterior.sizes["draw"]}
    fitted = causal.BayesianCausalForest(forests=forests, **same).fit(X, Y, Z, propensity=P)
    np.testing.assert_array_equal(draws, fitted.unit_effects())
