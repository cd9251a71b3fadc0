"""A predictor's functions are the model's, for all trees, leaves, rules and expressions."""

import numpy as np
import pytest
from support import predictor_models as models

import pymc_trees as pmt
from pymc_trees.distributions.tree_variable import evaluations
from pymc_trees.predictors import hard


@pytest.fixture(scope="module", params=models.CASES)
def case(request):
    return models.CASES[request.param]()


def own(case, name, rows):
    """(chain, draw, row, ...) of the model."""
    found = pmt.predictions(case.idata, case.model, rows, var_name=name, progressbar=False)
    return found["prediction"].transpose("chain", "draw", "row", ...).to_numpy()


@pytest.mark.filterwarnings("ignore:.*none of the new values:UserWarning")
@pytest.mark.parametrize("few", [True, False])
def test_functions_are_the_models(case, few, monkeypatch):
    if not few:
        monkeypatch.setattr(hard, "FEW", 0)
    predictor = pmt.predictor(case.idata, case.model)
    drawn = predictor.draws(case.new)
    of_trees = [v.name for v in case.model.deterministics if evaluations([v])]
    assert set(predictor.functions) == set(of_trees)
    for name in predictor.functions:
        values = drawn[name].transpose("chain", "draw", "row", ...).to_numpy()
        np.testing.assert_allclose(values, own(case, name, case.new), rtol=1e-12, atol=1e-12)
