"""Masked is missing: in training, in new rows, and refused where NaN is."""

import numpy as np
import pymc as pm
import pytest

import pymc_trees as pmt
from pymc_trees.core.columns.cells import MISSING
from pymc_trees.distributions.forest_inputs import declared
from pymc_trees.distributions.tree_variable import evaluations

X = np.arange(12.0).reshape(6, 2)
MASK = X == 3.0
LEAF = pmt.NormalLeaf(0.0, 1.0)


@pytest.mark.parametrize("dtype", [float, np.float32, int, object])
def test_masked_cells_are_missing_in_training_and_in_new_rows(dtype):
    masked = np.ma.masked_array(X.astype(dtype), MASK)
    expected = np.where(MASK, MISSING, X)
    with pm.Model() as model:
        pmt.BART("mu", masked, leaf=LEAF, m=2)
        data, trained = model["mu_X"], declared(model["mu_forest"]).X
        assert (trained == expected).all() and (data.get_value() == expected).all()
        for how in (pm.set_data, pmt.set_data):
            how({"mu_X": X})
            assert (data.get_value() == X).all()
            how({"mu_X": masked})
            assert (data.get_value() == expected).all()
        new = pmt.evaluate(model["mu_forest"], masked)
    [found] = evaluations([new])
    assert (found.X.data == expected).all()


def test_masked_levels_and_plain_model_data():
    with pm.Model():
        levels = pmt.Data(
            "levels", np.ma.masked_array(X[:, :1], X[:, :1] == 2), split_rules="subset"
        )
        plain = pm.Data("plain", X)
        pmt.BART("mu", plain, leaf=LEAF, m=2)
        pm.set_data({"plain": np.ma.masked_array(X, MASK)})
    assert levels.get_value()[:, 0].tolist() == [0.0, MISSING, 1.0, 2.0, 3.0, 4.0]
    assert (plain.get_value() == np.where(MASK, MISSING, X)).all()


def test_masked_is_refused_where_missing_is():
    masked = np.ma.masked_array(X, MASK)
    y = np.ma.masked_array(X[:, 0], [1, 0, 0, 0, 0, 0])
    with pm.Model():
        with pytest.raises(ValueError, match="X holds NaN"):
            pmt.SoftDecisionTree("mu", masked, leaf=LEAF)
        with pytest.raises(ValueError, match="Y holds masked"):
            pmt.SoftDecisionTree("mu", X, y)
        with pytest.raises(ValueError, match="Y holds NaN"):
            pmt.BART("mu", X, y)
        pmt.SoftDecisionTree("mu", X, leaf=LEAF)
        with pytest.raises(ValueError, match="mu_X holds NaN"):
            pmt.set_data({"mu_X": masked})
