"""A declaration that fails leaves the model as it was, so that a second try works."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pymc_trees as pmt

X = np.arange(12.0).reshape(6, 2)
Y = np.arange(6.0)
LEAF = pmt.NormalLeaf(0.0, 1.0)
FRAME = pd.DataFrame(X, columns=["a", "b"])

# how it fails first -> what then works, by the same name
DECLARED = {
    "forest": (
        lambda: pmt.BART("mu", FRAME, Y, alpha=2.0),
        lambda: pmt.BART("mu", FRAME, Y),
        ["mu_X", "mu_forest", "mu"],
    ),
    "dimension": (
        lambda: pmt.BART("mu", FRAME, Y, dims="row"),
        lambda: pmt.BART("mu", FRAME, Y),
        ["mu_X", "mu_forest", "mu"],
    ),
    "one of several": (
        lambda: pmt.BART("mu", FRAME, Y, m=2, shape=(2, 6), dims="row"),
        lambda: pmt.BART("mu", FRAME, Y, m=2, shape=(2, 6)),
        ["mu_X", "mu_0_forest", "mu_1_forest", "mu"],
    ),
    "single tree": (
        lambda: pmt.DecisionTree("mu", FRAME, max_nodes=0, leaf=LEAF),
        lambda: pmt.DecisionTree("mu", FRAME, leaf=LEAF),
        ["mu_X", "mu_forest", "mu"],
    ),
    "soft tree": (
        lambda: pmt.SoftDecisionTree("mu", FRAME, leaf=LEAF, dims="row"),
        lambda: pmt.SoftDecisionTree("mu", FRAME, leaf=LEAF),
        ["mu_X", "mu_forest", "mu"],
    ),
    "soft tree of text": (
        lambda: pmt.SoftDecisionTree("mu", FRAME.assign(b="text"), leaf=LEAF),
        lambda: pmt.SoftDecisionTree("mu", FRAME, leaf=LEAF),
        ["mu_X", "mu_forest", "mu"],
    ),
    "data": (
        lambda: pmt.Data("mu", FRAME, dims=("mu_row", "mu_column", "third")),
        lambda: pmt.Data("mu", FRAME),
        ["mu"],
    ),
}


@pytest.mark.parametrize("case", DECLARED)
def test_a_second_try_works(case):
    fails, works, names = DECLARED[case]
    with pm.Model(coords={"other": [1, 2]}) as model:
        pm.Normal("kept", dims="other")
        before = contents(model)
        with pytest.raises((ValueError, TypeError, pm.exceptions.ShapeError)):
            fails()
        assert contents(model) == before
        works()
    assert list(model.named_vars) == ["kept", *names]


def test_a_name_that_is_taken_is_an_error_that_changes_nothing():
    with pm.Model() as model:
        pm.Normal("mu")
        before = contents(model)
        with pytest.raises(ValueError, match="mu already exists"):
            pmt.BART("mu", FRAME, Y)
        assert contents(model) == before


def test_inside_a_nested_model():
    with pm.Model() as outer:
        pm.Normal("kept")
        with pm.Model(name="inner") as inner:
            before = contents(outer), contents(inner)
            with pytest.raises(ValueError, match="row"):
                pmt.BART("mu", FRAME, Y, dims="row")
            assert (contents(outer), contents(inner)) == before
            pmt.BART("mu", FRAME, Y)
    assert list(outer.named_vars) == ["kept", *(f"inner::mu{s}" for s in ("_X", "_forest", ""))]


def test_repeated_columns_of_new_rows_are_refused_and_change_nothing():
    with pm.Model():
        data = pmt.Data("X", FRAME)
        new = pd.DataFrame(np.ones((2, 3)), columns=["a", "b", "a"])
        with pytest.raises(ValueError, match="X has repeated column names: rename"):
            pmt.set_data({"X": new})
    assert (data.get_value() == X).all()


def contents(model):
    """Names of everything a model holds."""
    return {
        name: [str(k) for k in held]
        for name, held in vars(model).items()
        if isinstance(held, list | dict)
    }
