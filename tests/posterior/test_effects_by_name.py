"""A product of a forest and drawn numbers, by name, in every function that takes ``var_name``."""

import inspect
import re
from functools import cache

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from support.fitted import draws_of
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees import causal

pytestmark = [
    pytest.mark.usefixtures("quick_compile"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),
]
N = 24
RNG = np.random.default_rng(3)
X, NEW = RNG.random((N, 2)), RNG.random((5, 2))
Z = np.resize([0, 1, 1, 0, 1], N)
Y = 2 * X[:, 0] + Z * (1 + X[:, 1]) + RNG.normal(0, 0.3, N)
SMALL = {"m": 3, "m_effect": 3, "draws": 4, "tune": 5, "chains": 2, "cores": 1, "random_state": 3}
CAUSAL = ("two", "arms", "one", "dose two", "dose one")
ONE = {"cores": 1, "progressbar": False}
"""Options of functions that work on several draws at once."""
QUIET = {"progressbar": False}


@cache
def by_hand():
    """Hahn et al. (2020) as a user writes it: the effect is (b1 - b0) tau, and a line of it."""
    with pm.Model() as model:
        data = pm.Data("X", X)
        level = pmt.BART("level", data, m=3, leaf=pmt.NormalLeaf(0.0, 1.0))
        tau = pmt.BART("tau", data, m=3, alpha=0.9, leaf=pmt.NormalLeaf(0.0, 1.0))
        b = pm.Normal("b", 0.0, 1.0, shape=2, initval=np.array([-0.5, 0.5]))
        pm.Deterministic("effect", (b[1] - b[0]) * tau)
        pm.Deterministic("under treatment", 3.0 + level + b[1] * tau)
        pm.Normal("y", level + b[Z] * tau, 0.5, observed=Y)
        return model, draws_of()


@cache
def of_causal(forests):
    """Model and draws of a causal forest, and the forest."""
    *dose, kind = forests.split()
    z = X[:, 0] + np.linspace(0, 1, N) if dose else Z
    forest = causal.BayesianCausalForest(forests=kind, **SMALL).fit(X, Y, z, propensity=X[:, 1])
    return forest.model_, forest.idata_, forest


def scale():
    """(chain, draw) b1 - b0."""
    _, idata = by_hand()
    return idata.posterior["b"][..., 1] - idata.posterior["b"][..., 0]


def times(power):
    """Whether something of the effect is that of tau times a power of the scale, draw by draw."""

    def check(found, of_tau):
        for name in found:
            if name == "data":
                continue
            wanted = of_tau[name] * scale() ** power
            wanted = wanted.transpose(*found[name].dims)
            np.testing.assert_allclose(found[name], wanted, rtol=1e-9, atol=1e-10, err_msg=name)
            assert name in ("base_values", "loss") or float(abs(found[name]).max()) > 0

    return check


def of_sobol(found, of_tau):
    times(0)(found[["first_order", "total"]], of_tau)
    times(2)(found[["variance"]], of_tau)


def of_strength(found, of_tau):
    times(0)(found[["overall"]], of_tau)
    times(0)(found[["pairwise"]], of_tau)
    wanted = (of_tau["unexplained"] * abs(scale())).transpose(*found["unexplained"].dims)
    np.testing.assert_allclose(found["unexplained"], wanted, rtol=1e-9, atol=1e-10)


def of_submodels(found, of_tau):
    np.testing.assert_array_equal(found["feature"], of_tau["feature"])
    times(0)(found[["r2"]], of_tau)
    times(1)(found[["prediction", "full"]], of_tau)


def of_summary(found, of_tau):
    model, idata = by_hand()
    effect = pmt.predictions(idata, model, var_name="tau", **QUIET)["prediction"] * scale()
    np.testing.assert_allclose(found["mean"], effect.mean(("chain", "draw")), rtol=1e-12)
    assert float(abs(found["mean"] - of_tau["mean"]).max()) > 1e-3


def of_picture(found, of_tau):
    assert found.backend == of_tau.backend == "none"


ASK = {
    "predictions": ({"data": NEW}, times(1)),
    "comparisons": ({"variables": [0, 1]}, times(1)),
    "slopes": ({"variables": [0, 1]}, times(1)),
    "partial_dependence": ({"features": 0}, times(1)),
    "accumulated_effects": ({"feature": 1}, times(1)),
    "permutation_importance": ({"n_repeats": 2, "random_state": 1}, times(2)),
    "summarise_function": ({}, of_summary),
    "shap_values": ({"cores": 1}, times(1)),
    "shap_interactions": ({"cores": 1, "background": 4, "random_state": 1}, times(1)),
    "sobol_indices": ({"cores": 1}, of_sobol),
    "interaction_strength": ({"cores": 1}, of_strength),
    "compute_variable_importance": ({"cores": 1, "samples": 8}, of_submodels),
    "plot_pdp": ({"backend": "none"}, of_picture),
    "plot_ice": ({"backend": "none"}, of_picture),
    "plot_ale": ({"backend": "none"}, of_picture),
    "plot_convergence": ({"backend": "none"}, of_picture),
}
"""What is asked with, and how the answer for the effect follows from that for tau."""
OTHERS = {"plot_predictive_densities", "forecast", "diagnose"}
"""Those with a ``var_name`` that is an observed variable, or at training rows alone."""
CLOSED = {
    "shap_values",
    "shap_interactions",
    "sobol_indices",
    "interaction_strength",
    "compute_variable_importance",
}
"""Those that look into trees."""


def test_no_function_is_left_out():
    functions = [name for name in pmt.__all__ if inspect.isfunction(getattr(pmt, name))]
    takes = {f for f in functions if "var_name" in inspect.signature(getattr(pmt, f)).parameters}
    assert takes - OTHERS == set(ASK)


@pytest.mark.parametrize("name", ASK)
def test_of_an_effect_written_by_hand(name):
    model, idata = by_hand()
    given, check = ASK[name]
    given = given | QUIET
    found, of_tau = (
        getattr(pmt, name)(idata, model, var_name=var, **given) for var in ("effect", "tau")
    )
    check(found, of_tau)


ALL = [(forests, name) for forests in CAUSAL for name in ASK]
QUICK = [(forests, name) for forests in ("two", "one") for name in ("predictions", "shap_values")]


@pytest.mark.parametrize(("forests", "name"), tiers(ALL, QUICK))
def test_of_the_effect_of_a_causal_forest(forests, name):
    model, idata, forest = of_causal(forests)
    assert "effect" not in idata.posterior  # nothing is kept twice
    given = ASK[name][0] | QUIET
    if name == "predictions":
        found = pmt.predictions(idata, model, var_name="effect", **QUIET)["prediction"]
        np.testing.assert_allclose(found, forest.unit_effects(), rtol=1e-9, atol=1e-12)
        assert float(abs(found).max()) > 0
        return
    if forests.endswith("one") and name in CLOSED:
        if name == "shap_values":  # against a background, as for any function
            with pytest.raises(ValueError, match="effect is not a sum of trees.*background="):
                pmt.shap_values(idata, model, var_name="effect", **given)
            given |= {"background": 3, "draws": 2}
            found = pmt.shap_values(idata, model, var_name="effect", **given)
            total = found["base_values"] + found["values"].sum("feature")
            wanted = pmt.predictions(idata, model, var_name="effect", draws=2, **QUIET)
            wanted = wanted["prediction"]
            np.testing.assert_allclose(total.transpose(*wanted.dims), wanted, rtol=1e-9)
            return
        said = "at rows made of those of X|uses columns of X outside the splits"
        with pytest.raises(ValueError, match=f"effect .*({said}).*permutation_importance"):
            getattr(pmt, name)(idata, model, var_name="effect", **given)
        return
    found = getattr(pmt, name)(idata, model, var_name="effect", **given)
    if name == "shap_values":
        total = found["base_values"] + found["values"].sum("feature")
        wanted = pmt.predictions(idata, model, var_name="effect", **QUIET)["prediction"]
        np.testing.assert_allclose(total.transpose(*wanted.dims), wanted, rtol=1e-9, atol=1e-12)
    if name == "partial_dependence" and forests == "arms":
        grid, f = found["x0"].to_numpy(), {}
        for arm in ("control", "treated"):
            asked = {"var_name": f"f_{arm}", "grid": grid, "X": model["X"].get_value()}
            f[arm] = pmt.partial_dependence(idata, model, 0, **asked, **QUIET)["average"]
        np.testing.assert_allclose(found["average"], f["treated"] - f["control"], atol=1e-12)


def test_the_doses_that_are_compared_are_data():
    for forests in ("dose two", "dose one"):
        model, idata, forest = of_causal(forests)
        with model:
            pm.set_data({"contrast": [0.2, 0.9]})
        found = pmt.predictions(idata, model, var_name="effect", **QUIET)["prediction"]
        with model:
            pm.set_data({"contrast": [0.0, 1.0]})
        np.testing.assert_allclose(found, forest.unit_effects((0.2, 0.9)), rtol=1e-9, atol=1e-12)


def test_a_line_of_several_forests_and_drawn_numbers_is_a_sum():
    model, idata = by_hand()
    posterior = idata.posterior
    b, level, tau = (posterior[name].to_numpy() for name in ("b", "level", "tau"))
    wanted = 3 + level + b[..., [1]] * tau
    asked = {"var_name": "under treatment", **ONE}
    found = pmt.shap_values(idata, model, background=4, random_state=1, **asked)
    total = found["base_values"] + found["values"].sum("feature")
    np.testing.assert_allclose(total.transpose("chain", "draw", "row"), wanted, atol=1e-11)
    assert pmt.sobol_indices(idata, model, **asked)["variance"].min() > 0


def test_the_picture_shows_the_effect():
    """Hahn's tau alone is another quantity: its scale is that of b."""
    model, idata = by_hand()
    found = pmt.plot_pdp(idata, model, 0, var_name="effect", backend="matplotlib", **QUIET)
    wanted = pmt.partial_dependence(idata, model, 0, var_name="effect", **QUIET)["average"]
    lines = [line for ax in found.viz["figure"].item().axes for line in ax.lines]
    means = wanted.mean(("chain", "draw")).to_numpy()
    shown = [np.asarray(line.get_ydata(), dtype=float) for line in lines]
    assert any(y.size == means.size and np.allclose(y, means, rtol=1e-12) for y in shown)


@cache
def made():
    """Functions of trees at rows that are made of those of X, and of numbers of each row."""
    with pm.Model() as model:
        whole = pm.Data("X", np.column_stack([X, np.arange(N) % 3]).astype(int) + 0)
        data = pm.Data("R", X)
        f = pmt.BART("f", data, m=3, leaf=pmt.NormalLeaf(0.0, 1.0))
        g = pmt.BART("g", whole, m=3, leaf=pmt.NormalLeaf(0.0, 1.0))
        s = pm.HalfCauchy("s", 1.0)
        each, of_group = pm.Normal("each", 0, 1, shape=N), pm.Normal("of_group", 0, 1, shape=3)
        trees, whole_trees = model["f_forest"], model["g_forest"]

        def held(value):
            return pt.set_subtensor(data[:, 1], value)

        pm.Deterministic("one held", pmt.evaluate(trees, held(0.3)))
        pm.Deterministic("held and f", s * (pmt.evaluate(trees, held(0.3)) - f))
        pm.Deterministic("by a draw", pmt.evaluate(trees, held(s)))
        pm.Deterministic("swapped", pmt.evaluate(trees, data[:, ::-1]))
        pm.Deterministic("of whole", pmt.evaluate(whole_trees, pt.set_subtensor(whole[:, 2], 1)))
        pm.Deterministic("curved", pm.math.exp(s * f))
        pm.Deterministic("reversed", pmt.evaluate(trees, data[::-1]))
        pm.Deterministic("demeaned", pmt.evaluate(trees, data - data.mean(axis=0)))
        pm.Deterministic("noisy", f + each)
        pm.Deterministic("grouped", f + of_group[np.arange(N) % 3])
        y = pm.Normal("y", s * f + g, 1.0, observed=Y)
        pm.Deterministic("left", y - f)
        return model, draws_of()


KNOWN = {"f", "g", "one held", "held and f", "by a draw", "swapped", "of whole", "curved"}
"""Those of them that are known at other rows."""
OWN = {"noisy", "grouped"}
"""Those that are known at the rows of the model."""


def at(name, rows):
    model, idata = made()
    return pmt.predictions(idata, model, rows, var_name=name, **QUIET)["prediction"]


def test_trees_at_rows_made_of_those_of_X():
    _, idata = made()
    s = idata.posterior["s"].to_numpy()[..., None]
    held = np.column_stack([NEW[:, 0], np.full(5, 0.3)])
    np.testing.assert_allclose(at("one held", NEW), at("f", held), rtol=1e-12)
    wanted = s * (at("f", held) - at("f", NEW))
    np.testing.assert_allclose(at("held and f", NEW), wanted, rtol=0, atol=1e-12)
    np.testing.assert_allclose(at("swapped", NEW), at("f", NEW[:, ::-1]), rtol=1e-12)
    np.testing.assert_allclose(at("curved", NEW), np.exp(s * at("f", NEW)), rtol=1e-12)
    rows = np.array([[0.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
    ones = at("g", np.array([[0.0, 0.0, 1.0]] * 2))
    np.testing.assert_allclose(at("of whole", rows), ones, rtol=1e-12)
    by_draw = at("by a draw", NEW)
    for chain, draw in np.ndindex(s.shape[:2]):
        rows = np.column_stack([NEW[:, 0], np.full(5, s[chain, draw, 0])])
        np.testing.assert_allclose(by_draw[chain, draw], at("f", rows)[chain, draw], rtol=1e-12)
    assert float(abs(at("held and f", NEW)).max()) > 0


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("reversed", "row i of reversed depends on other rows"),
        ("demeaned", "row i of demeaned depends on other rows"),
        ("noisy", r"noisy takes an entry of \['each'\] for each row.*inside it"),
        ("grouped", r"grouped takes an entry of \['of_group'\] for each row.*inside it"),
        ("left", r"left depends on the observed \['y'\], .*inside it"),
        ("y", r"'y' is not a function of trees: choose from \['f', 'g', .*'curved'"),
    ],
)
def test_what_cannot_be_known_at_other_rows_is_refused(name, said):
    with pytest.raises(ValueError, match=said):
        at(name, NEW)
    assert at("f", NEW).sizes["row"] == 5  # as it says


@pytest.mark.parametrize("name", [None, "y"])
def test_each_function_that_an_error_proposes_can_be_asked(name):
    """And none is proposed that would only end in the next refusal."""
    model, idata = made()
    with pytest.raises(ValueError, match="choose") as said:
        pmt.predictions(idata, model, var_name=name, **QUIET)
    proposed = re.findall(r"'([^']+)'", str(said.value).split("[")[1])
    assert set(proposed) == KNOWN | OWN
    for one in proposed:
        assert pmt.predictions(idata, model, var_name=one, **QUIET)["prediction"].sizes["row"] == N


def test_what_is_proposed_where_a_forest_has_no_function_of_its_own():
    def of(declare):
        with pm.Model() as model:
            f = pmt.evaluate(pmt.Forest("trees", X, m=2, leaf=pmt.NormalLeaf(0.0, 1.0)), X)
            pm.Deterministic("effect", declare(f))
            prior = pm.sample_prior_predictive(2, random_seed=1)
        prior["posterior"] = prior["prior"]
        return prior, model

    scaled = of(lambda f: pm.HalfNormal("s") * f)
    centred = of(lambda f: f - f.mean())
    for name in (None, "trees"):
        with pytest.raises(ValueError, match=r"\['effect'\]"):
            pmt.predictions(*scaled, var_name=name, **QUIET)
        with pytest.raises(ValueError, match="no function of trees: declare one by BART"):
            pmt.predictions(*centred, var_name=name, **QUIET)
    assert pmt.predictions(*scaled, var_name="effect", **QUIET)["prediction"].sizes["row"] == N


def test_curved_functions_have_no_closed_form():
    model, idata = made()
    with pytest.raises(ValueError, match="curved is not a sum of trees"):
        pmt.shap_values(idata, model, var_name="curved", **ONE)
    with pytest.raises(ValueError, match=r"functions \['f', 'g', .*'curved'.*\]: choose one"):
        pmt.predictions(idata, model, **QUIET)
    lost = idata.posterior.to_dataset().drop_vars("s")
    with pytest.raises(ValueError, match=r"idata lacks \['s'\], which curved depends on"):
        pmt.predictions(lost, model, var_name="curved", **QUIET)
