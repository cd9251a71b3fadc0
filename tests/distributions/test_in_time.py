"""Messages that come when a model is declared or sampled, not when it predicts an hour later."""

import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pymc_trees as pmt
from pymc_trees.hooks.data import will_be_fixed

X = np.random.default_rng(1).random((12, 2))
Y = X[:, 0]
LEAF = pmt.NormalLeaf(0.0, 1.0)
BRIEF = {"draws": 2, "tune": 2, "chains": 1, "cores": 1, "progressbar": False, "quiet": True}


def model_of(inputs=lambda: pm.Data("X", X), observed=Y, **given):
    with pm.Model(coords={"row": range(12)}) as model:
        mu = pmt.BART("mu", inputs(), m=2, leaf=LEAF)
        more = {"shape": mu.shape} if given.pop("follows", False) else given
        pm.Normal("y", mu, 1.0, observed=observed, **more)
    return model


def test_a_forgotten_shape_is_said_when_the_model_is_sampled():
    with model_of(), pytest.warns(UserWarning, match="^y keeps the rows .* rows of X will") as said:
        pm.sample(**BRIEF, compute_convergence_checks=False)
    [ours] = [warning for warning in said if "keeps the rows" in str(warning.message)]
    assert ours.filename == __file__  # the user's line


@pytest.mark.parametrize(
    "model",
    [
        lambda: model_of(follows=True),
        lambda: model_of(dims="row"),
        lambda: model_of(inputs=lambda: X),
        lambda: model_of(observed=np.where(Y > 0.5, np.nan, Y)),
    ],
    ids=["shape", "dims", "an array", "missing y"],
)
@pytest.mark.filterwarnings("ignore:Data in y contains missing values")
def test_it_is_not_said_where_rows_follow_or_cannot_change(model):
    assert will_be_fixed(model()) == {}


@pytest.mark.parametrize(
    ("expression", "where"),
    [
        (lambda: pm.Data("scale", 2.0) * pm.Data("X", X), "X"),
        (lambda: pm.Data("X", X[:2]) - pm.Data("mean", X[:2].mean(axis=0)), "X"),
        (lambda: pm.Data("mean", X[:2].mean(axis=0)) + pm.Data("X", X[:2]), "X"),
        (lambda: pm.Data("x", X[:, 0])[:, None] * np.ones(2), "x"),
    ],
    ids=["a number", "means", "means first", "a column"],
)
def test_it_names_what_has_the_rows(expression, where):
    with pm.Model() as model:
        inputs = expression()
        n = inputs.shape.eval()[0]
        pm.Normal("y", pmt.BART("mu", inputs, m=2, leaf=LEAF), 1.0, observed=Y[:n])
    assert will_be_fixed(model) == {"y": where}


def test_it_is_not_said_of_groups():
    """The rows of X are groups, each with several observations."""
    with pm.Model() as model:
        mu = pmt.BART("mu", pm.Data("X", X), m=2, leaf=LEAF)
        pm.Normal("y", mu[np.arange(24) % 12], 1.0, observed=np.ones(24))
    assert will_be_fixed(model) == {}


@pytest.mark.parametrize(
    ("table", "what", "kind"),
    [
        (np.where(X > 0.9, np.nan, X), "missing cells", NotImplementedError),
        (pd.DataFrame({"a": [1.0, np.nan]}), "missing cells", NotImplementedError),
        (np.ma.masked_greater(X, 0.5), "missing cells", NotImplementedError),
        (pd.DataFrame({"a": ["u", "v"]}), "text", ValueError),
        (np.array([["u"], ["v"]], dtype=object), "text", TypeError),
    ],
)
def test_tables_that_pymc_does_not_take_name_what_does(table, what, kind):
    with pm.Model():
        with pytest.raises(kind, match=rf"rows holds {what}, .* use pymc_trees.Data\('rows', "):
            pm.Data("rows", table)
        assert pmt.Data("rows", pd.DataFrame(table) if what == "text" else table) is not None


def test_other_values_that_it_does_not_take_are_pymcs():
    with pm.Model(), pytest.raises(NotImplementedError, match="^Masked arrays"):
        pm.Data("y", [1.0, np.nan])


def test_the_remedy_is_there_before_any_name_of_the_package_is_used():
    code = (
        "import numpy as np, pymc as pm, pymc_trees, sys\n"
        "assert 'pymc_trees.hooks' not in sys.modules\n"
        "with pm.Model():\n    pm.Data('X', np.full((3, 1), np.nan))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "use pymc_trees.Data('X', ...)" in run.stderr


@pytest.mark.parametrize("again", [pmt.BART, pmt.SoftBART, pmt.DecisionTree, pmt.SoftDecisionTree])
def test_a_second_forest_of_a_name(again):
    with pm.Model():
        pmt.BART("mu", X, Y, m=2)
        with pytest.raises(ValueError, match="name mu already exists: .* a forest called 'mu'"):
            again("mu", X, leaf=LEAF)
        again("other", X, leaf=LEAF)
    with pm.Model(name="inner"):
        pmt.BART("mu", X, Y, m=2)
        with pytest.raises(ValueError, match="a forest called 'mu'"):
            again("mu", X, leaf=LEAF)


def sampled(**initvals):
    with pm.Model():
        mu = pmt.BART("mu", X, Y, m=2)
        sigma = pm.HalfNormal("sigma", initval=initvals.pop("declared", None))
        low = pm.Normal("low")
        pm.Uniform("share", low, low + 1.0)
        pm.Normal("y", mu, sigma, observed=Y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return pm.sample(**BRIEF, initvals=initvals, compute_convergence_checks=False)


@pytest.mark.parametrize("given", [{"sigma": -1.0}, {"declared": -1.0}, {"sigma": np.array(0.0)}])
def test_a_start_outside_a_prior_is_the_fault_of_the_start(given):
    with pytest.raises(ValueError, match=r"^initvals: sigma=.* its prior, HalfNormal\. Give it a"):
        sampled(**given)


def test_starts_inside_a_prior_are_taken():
    assert sampled(sigma=0.5, low=0.2, share=0.4)["posterior"].sizes["draw"] == 2
    assert sampled()["posterior"].sizes["draw"] == 2


@pytest.mark.parametrize("reshaped", [(-1, 1), (1, -1)])
def test_what_is_said_of_one_dimension_works(reshaped):
    with pm.Model():
        with pytest.raises(ValueError, match=r"reshape\(-1, 1\), for a single row X.reshape\(1, "):
            pmt.BART("mu", Y, leaf=LEAF)
        mu = pmt.BART("mu", pm.Data("X", X[:, :1]), leaf=LEAF)
        with pytest.raises(ValueError, match="single row X.reshape"):
            pmt.set_data({"X": Y})
        if reshaped == (-1, 1):
            pmt.set_data({"X": Y.reshape(reshaped)})
            assert mu.shape.eval() == (12,)
