"""Treatments and outcomes that causal forests do not take, and that what their errors say works."""

from functools import cache

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from scipy.special import expit

import pymc_trees as pmt
from pymc_trees import causal

pytestmark = [
    pytest.mark.usefixtures("quick_compile"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),
]
N = 60
RNG = np.random.default_rng(7)
X = RNG.random((N, 2))
P = 0.25 + 0.5 * X[:, 0]
Z = (RNG.random(N) < P).astype(int)
Y = 3 * X[:, 0] + Z * (1 + X[:, 1]) + RNG.normal(0, 0.3, N)
ARM = np.resize([0, 1, 2, 3, 4], N)
DRUG = np.array(["none", "old", "new"])[ARM % 3]
SICK = (RNG.random(N) < expit(2 * Z - 1)).astype(int)
SMALL = {"m": 3, "m_effect": 2, "draws": 4, "tune": 5, "chains": 1, "cores": 1, "random_state": 3}
FRAME = pd.DataFrame(X, columns=["age", "score"], index=np.arange(N)[::-1])


def fit(X=X, y=Y, z=Z, propensity=P, **given):
    """A causal forest of few draws."""
    fitting = {name: given.pop(name) for name in ("group", "sample_weight") if name in given}
    forest = causal.BayesianCausalForest(**SMALL, **given)
    return forest.fit(X, y, z, propensity=propensity, **fitting)


REFUSED = {
    "arms by number": ({"z": ARM}, r"z holds 0, 1, 2, 3 and 4, which may be doses or.*\"dose\""),
    "three whole floats": ({"z": 10.0 * (ARM % 3)}, r"z holds 0, 10 and 20, which may be doses"),
    "negative codes": ({"z": ARM % 3 - 1}, r"z holds -1, 0 and 1, which may be"),
    "ten levels": ({"z": np.resize(np.arange(10), N)}, r"z holds 0, 1, 2, 3, \.\.\. and 9"),
    "doses as binary": ({"z": ARM, "treatment": "binary"}, "give 0 for untreated and 1"),
    "1 and 2": ({"z": Z + 1}, 'z holds 1 and 2: give 0 for untreated and 1.*"dose"'),
    "-1 and 1": ({"z": 2 * Z - 1}, "z holds -1 and 1: give 0 for untreated"),
    "two arms by name": ({"z": np.where(Z, "drug", "none")}, "z must hold numbers.*z == 'drug'"),
    "arms by name": ({"z": DRUG}, r"z must hold numbers.*\['new', 'none', 'old'\], keep .* of two"),
    "categories": ({"z": pd.Categorical(DRUG)}, r"z must hold numbers.*z == 'new'"),
    "a series of text": ({"z": pd.Series(DRUG)}, r"z must hold numbers.*z == 'new'"),
    "one-hot arms": ({"z": np.eye(5)[ARM]}, "z has 5 columns: give one vector of 0 and 1"),
    "a frame of arms": ({"z": pd.get_dummies(DRUG)}, "z has 3 columns: give one vector"),
    "constant": ({"z": np.zeros(N)}, "z is 0 in every row"),
    "missing": ({"z": np.where(Z, np.nan, 0)}, "z holds missing"),
    "no such treatment": ({"treatment": "arms"}, r"treatment='arms': .*'dose'"),
    "outcome 0 and 1": ({"y": SICK}, r"y holds 0 and 1 only.*outcome=\"normal\".*pm.Bernoulli"),
    "outcome bool": ({"y": SICK == 1}, r"y holds 0 and 1 only.*pm.Bernoulli"),
    "outcome 1 and 2": ({"y": SICK + 1}, "y holds 1 and 2 only"),
    "outcome codes": ({"y": ARM - 1.0}, r"y holds -1.*observe y by a distribution of such numbers"),
    "outcome counts": ({"y": ARM + SICK}, r"y holds 0, 1, 2, 3, 4 and 5 only.*pm.Poisson"),
    "outcome text": ({"y": np.where(SICK, "yes", "no")}, "y must hold numbers only"),
    "outcome of two columns": ({"y": np.column_stack([Y, Y])}, r"y has shape \(60, 2\)"),
    "outcome missing": ({"y": np.where(Z, np.nan, Y)}, "y holds missing"),
    "no such outcome": ({"outcome": "bernoulli"}, r"outcome='bernoulli'.*'normal'"),
    "weights": ({"sample_weight": np.ones(N)}, "sample_weight is not taken.*leave it out"),
    "propensity above 1": ({"propensity": P + 1}, "propensity must hold probabilities"),
    "propensity below 0": ({"propensity": P - 1}, "propensity must hold probabilities"),
    "y in another order": (
        {"X": FRAME, "y": pd.Series(Y)},
        r"y has the rows of X in another order.*y.loc\[X.index\]",
    ),
    "z in another order": ({"X": FRAME, "z": pd.Series(Z)}, r"z has the rows of X in another"),
    "propensity in another order": (
        {"X": FRAME, "propensity": pd.Series(P)},
        r"propensity has the rows of X in another",
    ),
    "a column with a name of the model": (
        {"X": FRAME.rename(columns={"age": "propensity"})},
        r"X has columns named \['propensity'\]",
    ),
    "the treatment among the columns": (
        {"X": FRAME.rename(columns={"age": "treatment"}), "forests": "one"},
        r"X has columns named \['treatment'\]",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    given, said = REFUSED[case]
    with pytest.raises((TypeError, ValueError), match=said):
        fit(**given)


def test_propensity_and_overlap_say_the_same():
    for z, said in ((ARM, "which may be doses"), (DRUG, "z must hold numbers"), (Z[:5], "shape")):
        with pytest.raises((TypeError, ValueError), match=said):
            causal.propensity(X, z)
    with pytest.raises(ValueError, match="z is not binary: overlap"):
        causal.overlap(P, ARM)


@cache
def plain():
    return fit().unit_effects()


TAKEN = {
    "bools": {"z": Z == 1},
    "whole floats": {"z": Z.astype(float)},
    "a column": {"z": Z[:, None]},
    "a frame of one column": {"z": pd.DataFrame({"z": Z})},
    "categories of 0 and 1": {"z": pd.Categorical(Z)},
    "binary by name": {"treatment": "binary"},
    "outcome a frame of one column": {"y": pd.DataFrame({"y": Y})},
    "outcome a column": {"y": Y[:, None]},
    "outcome by name": {"outcome": "normal"},
    "the same labels in this order": {"X": FRAME, "y": pd.Series(Y, FRAME.index)},
    "other labels": {"X": FRAME, "y": pd.Series(Y, np.arange(N) + N)},
    "text == a name": {"z": np.where(Z, "drug", "none") == "drug"},
}


@pytest.mark.parametrize("case", TAKEN)
def test_what_says_the_same_gives_the_same(case):
    np.testing.assert_array_equal(fit(**TAKEN[case]).unit_effects(), plain())


def test_what_the_errors_say_works():
    doses = fit(z=ARM, treatment="dose", propensity=ARM.astype(float))
    np.testing.assert_array_equal(
        doses.unit_effects((0, 2)), 2 * doses.unit_effects((0, 1))
    )  # linear in the dose
    assert not doses._rows.treatment.binary
    pair = np.isin(ARM, [0, 3])
    of_two = fit(X[pair], Y[pair], ARM[pair] == 3, P[pair])
    assert of_two.unit_effects().sizes["row"] == pair.sum()
    of_names = np.isin(DRUG, ["none", "new"])
    fit(X[of_names], Y[of_names], DRUG[of_names] == "new", P[of_names])
    hot = np.eye(5)[ARM]
    either = hot[:, 0] + hot[:, 1] > 0
    fit(X[either], Y[either], hot[either, 1], P[either])
    in_order = pd.Series(Y).loc[FRAME.index]
    fit(FRAME, in_order)
    linear = fit(y=SICK, outcome="normal")
    weights = np.linspace(1, 2, N)
    average = (linear.unit_effects() * weights).sum("row") / weights.sum()
    assert average.dims == ("chain", "draw")
    assert fit(z=Z, treatment="dose")._rows.treatment.binary is False


@pytest.mark.parametrize("law", ["Bernoulli", "Poisson"])
def test_another_law_is_a_model_of_pymc(law):
    """The effect of a column of X, by `comparisons`, is the difference of f at 1 and 0."""
    y = SICK if law == "Bernoulli" else ARM
    link = {"Bernoulli": expit, "Poisson": np.exp}[law]
    inputs = pd.DataFrame(X, columns=["age", "score"]).assign(propensity=P, z=Z)
    with pm.Model() as model:
        f = pmt.BART("f", inputs, m=4, leaf=pmt.NormalLeaf(0.0, 0.5))
        mean = {"logit_p": f} if law == "Bernoulli" else {"mu": pm.math.exp(f)}
        getattr(pm, law)("y", **mean, observed=y, shape=f.shape)
        options = {"draws": 4, "tune": 5, "chains": 1, "progressbar": False, "random_seed": 1}
        idata = pm.sample(**options, compute_convergence_checks=False)
    found = pmt.comparisons(idata, model, "z", func=link, progressbar=False)["z"].squeeze()
    under = [
        link(pmt.predictions(idata, model, inputs.assign(z=z), progressbar=False)["prediction"])
        for z in (0, 1)
    ]
    np.testing.assert_allclose(found, (under[1] - under[0]).squeeze(), rtol=0, atol=1e-12)


def test_a_saved_forest_of_doses_remains_one(tmp_path):
    doses = fit(z=ARM, treatment="dose", propensity=ARM.astype(float))
    doses.save(tmp_path / "doses.nc")
    again = causal.BayesianCausalForest.load(tmp_path / "doses.nc")
    np.testing.assert_array_equal(again.unit_effects((0, 4)), doses.unit_effects((0, 4)))
    asked = {"var_name": "effect", "progressbar": False}
    np.testing.assert_allclose(
        pmt.predictions(again.idata_, again.model_, **asked)["prediction"],
        doses.unit_effects(),
        rtol=1e-12,
    )
