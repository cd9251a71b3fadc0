"""What the page on causal inference finds, against what was simulated; and the model it writes out.

Tolerances are four posterior standard deviations, which contain what is simulated in all but a few
of ten thousand runs where the model holds; each deviation is small beside the effect itself.
"""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit
from support.few_draws import sample_few

import pymc_trees as pmt
from pymc_trees import causal

pytestmark = [
    pytest.mark.full,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),
]
DOCS = Path(__file__).parents[2] / "docs"
SAMPLE = ("chain", "draw")


def block(words: str, page: str = "causal") -> str:
    """The block of code of a page that has these words."""
    text = (DOCS / f"{page}.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    [found] = [code for code in blocks if words in code]
    return found


def check_near(found, truth, most):
    """Posterior mean within four sds of the truth, which are below a bound each."""
    mean, sd = found.mean(SAMPLE).to_numpy(), found.std(SAMPLE).to_numpy()
    assert np.all(sd < most), sd
    np.testing.assert_array_less(np.abs(mean - truth), 4 * sd + 1e-12)


@cache
def fitted():
    """What the first block leaves, with fewer draws."""
    names = {}
    with pytest.MonkeyPatch.context() as patch:
        sample_few(patch, 150)
        exec(block("make_treatment"), names)
    return names


def test_effects_in_the_sample_and_elsewhere():
    names = fitted()
    forest, study, z = names["forest"], names["study"], names["z"]
    truth = study["effect"].to_numpy()
    check_near(forest.satt(), truth[z == 1].mean(), 0.4)
    check_near(forest.sate(), truth.mean(), 0.4)
    of_units = forest.unit_effects()
    for group in (study["age"] < 55, study["age"] > 65):
        mean = of_units.isel(row=np.flatnonzero(group)).mean("row")
        check_near(mean, truth[group].mean(), 0.5)
    cate = forest.cate(names["X"].iloc[:7])
    np.testing.assert_allclose(cate, of_units.isel(row=range(7)), rtol=0, atol=1e-9)
    assert names["naive"] < truth[z == 1].mean() - 0.5  # which would be far outside


def test_propensities():
    names = fitted()
    study, p = names["study"], names["p"]
    truth = expit(0.8 * study["severity"] + 0.4 * (study["clinic"] == "west"))
    assert np.abs(p - truth).mean() < 0.12  # the sd of a share of 15 rows; truth goes from .1 to .9
    assert np.corrcoef(p, truth)[0, 1] > 0.8


def test_the_effect_is_a_function_of_x():
    names = fitted()
    forest = names["forest"]
    asked = {"var_name": "effect", "grid": [40, 75], "progressbar": False}
    found = pmt.partial_dependence(forest.idata_, forest.model_, "age", **asked)["average"]
    check_near(found, np.array([2.0, 0.5]), 0.5)
    of_tau = pmt.partial_dependence(
        forest.idata_, forest.model_, "age", **(asked | {"var_name": "tau"})
    )["average"]
    b = forest.idata_.posterior["b"]
    scale = b[..., 1].to_numpy() - b[..., 0].to_numpy()
    np.testing.assert_allclose(found, scale[..., None] * of_tau, rtol=1e-9)
    needed = pmt.compute_variable_importance(
        forest.idata_, forest.model_, var_name="effect", progressbar=False
    )
    gains = np.diff(needed["r2"].mean(SAMPLE).to_numpy(), prepend=0.0)
    assert needed["feature"].to_numpy()[gains.argmax()] == "age"


def test_the_model_written_out_is_that_of_the_estimator():
    names = dict(fitted())
    exec(block("by_hand"), names)
    estimator, by_hand = names["forest"].model_, names["by_hand"]
    point = estimator.initial_point()
    drawn = names["forest"].idata_.posterior.isel(chain=0, draw=-1)
    for name in ("prognosis_forest", "tau_forest", "b"):
        assert drawn[name].shape == point[name].shape
        point[name] = drawn[name].to_numpy()
    for name in ("prognosis_forest", "scale_prognosis", "tau_forest", "b", "y"):
        own = [model.compile_logp([model[name]])(point) for model in (estimator, by_hand)]
        assert own[0] == pytest.approx(own[1], rel=1e-9), name


def test_two_arms_at_a_time(monkeypatch):
    sample_few(monkeypatch, 150)
    rng = np.random.default_rng(12)
    X = rng.random((400, 2))
    z = np.where(rng.random(400) < 0.15 + 0.7 * X[:, 0], 2, rng.integers(0, 2, 400))
    effect = 1.0 + (X[:, 0] > 0.5)
    y = 4 * X[:, 0] + effect * (z == 2) + rng.normal(0, 0.5, 400)
    two = np.isin(z, [0, 2])
    forest = causal.BayesianCausalForest(m=50, m_effect=20, random_state=1)
    check_near(forest.fit(X[two], y[two], z[two] == 2).sate(), effect[two].mean(), 0.3)


def test_an_experiment_with_an_outcome_of_0_and_1(monkeypatch):
    sample_few(monkeypatch, 150)
    names = {}
    exec(block("visitors = pd.DataFrame", "ab_tests"), names)
    exec(block("by=True", "ab_tests"), names)
    truth = names["new"] - names["old"]
    check_near(names["average"], truth.mean(), 0.05)
    assert truth.mean() > 0.08
