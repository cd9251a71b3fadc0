"""Every block of the page on treatments, on simulated data, against what was simulated.

Tolerances are four posterior standard deviations, which contain what is simulated in all but a few
of ten thousand runs where the model holds; each deviation is small beside the effect itself.
"""

import re
from functools import cache
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from support.few_draws import sample_few

import pymc_trees as pmt

pytestmark = [
    pytest.mark.full,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),
]
PAGE = Path(__file__).parents[2] / "docs/causal.md"
N, NOISE = 400, 0.5
SAMPLE = ("chain", "draw")


def effect_of(X):
    """Of the treatment, and of drug 2: above .5 of age it doubles."""
    return 1.0 + (X["age"].to_numpy() > 0.5)


def simulated():
    """Rows, and what the page calls them; treatment depends on age, as the outcome does."""
    rng = np.random.default_rng(12)
    X = pd.DataFrame({"age": rng.random(N), "score": rng.random(N)})
    X["town"] = rng.choice(["oslo", "rome"], N)
    before = 4 * X["age"].to_numpy()
    p = 0.15 + 0.7 * X["age"].to_numpy()
    z = (rng.random(N) < p).astype(int)
    arm = np.where(rng.random(N) < p, 2, rng.integers(0, 2, N))
    risk = expit(-1 + X["score"].to_numpy()[None] + np.array([[0.0], [1.5]]))
    sick = (rng.random(N) < risk[z, np.arange(N)]).astype(int)
    y = before + effect_of(X) * z + rng.normal(0, NOISE, N)
    y_of_arms = before + effect_of(X) * (arm == 2) + rng.normal(0, NOISE, N)
    names = {"X": X, "y": y, "z": z, "arm": arm, "sick": sick, "X_new": X.iloc[:7]}
    return names, p, y_of_arms, float(np.mean(risk[1] - risk[0]))


def blocks():
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def check_near(found, truth, most):
    """Posterior mean within four sds of the truth, which are below a bound each."""
    mean, sd = found.mean(SAMPLE).to_numpy(), found.std(SAMPLE).to_numpy()
    assert np.all(sd < most), sd
    np.testing.assert_array_less(np.abs(mean - truth), 4 * sd + 1e-12)


@cache
def fitted():
    """What the first block leaves, with fewer draws."""
    names, *truth = simulated()
    with pytest.MonkeyPatch.context() as patch:
        sample_few(patch, 150)
        exec(blocks()[0], names)
    return names, *truth


def test_there_are_five_blocks():
    assert len(blocks()) == 5


def test_effects_in_the_sample_and_elsewhere():
    names, *_ = fitted()
    forest, X, z = names["forest"], names["X"], names["z"]
    truth = effect_of(X)
    check_near(forest.satt(), truth[z == 1].mean(), 0.25)
    check_near(forest.sate(), truth.mean(), 0.25)
    of_units = forest.unit_effects()
    for young in (X["age"] < 0.3, X["age"] > 0.7):
        check_near(of_units.isel(row=np.flatnonzero(young)).mean("row"), truth[young].mean(), 0.4)
    cate = forest.cate(names["X_new"])
    np.testing.assert_allclose(cate, of_units.isel(row=range(7)), rtol=0, atol=1e-9)
    naive = names["y"][z == 1].mean() - names["y"][z == 0].mean()
    assert naive - truth.mean() > 0.8  # which would be far outside


def test_propensities_and_overlap(monkeypatch):
    names, p, *_ = fitted()
    plt.switch_backend("Agg")
    sample_few(monkeypatch, 100)
    exec(blocks()[1], names)
    error = np.abs(names["p"] - p).mean()
    assert error < 0.12  # the sd of a share of 15 rows; p itself goes from .15 to .85
    assert np.corrcoef(names["p"], p)[0, 1] > 0.8
    plt.close("all")


def test_pictures_show_the_effect():
    names, *_ = fitted()
    plt.switch_backend("Agg")
    exec("import pymc_trees as pmt\n" + blocks()[2], names)
    forest = names["forest"]
    asked = {"var_name": "effect", "grid": [0.2, 0.8], "progressbar": False}
    found = pmt.partial_dependence(forest.idata_, forest.model_, "age", **asked)["average"]
    check_near(found, np.array([1.0, 2.0]), 0.4)
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
    plt.close("all")


def test_two_arms_at_a_time(monkeypatch):
    names, _, y_of_arms, _ = simulated()
    sample_few(monkeypatch, 150)
    given = names | {"y": y_of_arms}
    exec("from pymc_trees import causal\n" + blocks()[3], given)
    truth = effect_of(given["X"][given["two"]]).mean()
    check_near(given["of_drug_2"].sate(), truth, 0.3)


def test_differences_of_risks(monkeypatch):
    names, p, _, truth = simulated()
    sample_few(monkeypatch, 300)
    given = names | {"p": p}
    exec("import pymc_trees as pmt\n" + blocks()[4], given)
    check_near(given["risk"].squeeze(), truth, 0.15)
    assert truth > 0.25
