"""The default leaf of the design's table, and what its prior says of f."""

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytest
from support.small_models import forest_of, step_data

import pymc_trees as pmt
from pymc_trees.distributions.forest_inputs import forest_inputs

pytestmark = pytest.mark.usefixtures("quick_compile")
X = step_data(20)[0]


def leaf_of(Y, m, **settings):
    """Mean and sd of the leaves that a front-end chose."""
    with pm.Model() as model:
        if m is None:
            pmt.DecisionTree("mu", X, Y, **settings)
        else:
            pmt.BART("mu", X, Y, m=m, **settings)
    return tuple(float(v.data) for v in forest_inputs(forest_of(model)[0]).leaf)


@pytest.mark.parametrize("m", [1, 7, 200])
def test_numbers(m):
    Y = np.linspace(-3.0, 5.0, 20)
    np.testing.assert_allclose(leaf_of(Y, m), (2.0 / (2 * m), 8.0 / (4 * np.sqrt(m))))


def test_one_tree():
    np.testing.assert_allclose(leaf_of(np.linspace(-3.0, 5.0, 20), None), (1.0, 2.0))


@pytest.mark.parametrize("m", [1, 50])
@pytest.mark.parametrize("dtype", [int, float, bool])
def test_two_classes(m, dtype):
    Y = (np.arange(20) % 3 == 0).astype(dtype)
    np.testing.assert_allclose(leaf_of(Y, m), (0.0, 3.0 / (2 * np.sqrt(m))))


@pytest.mark.parametrize(
    "as_y",
    [list, pd.Series, pl.Series, lambda y: y[:, None], np.float32, lambda y: y.astype(int)],
)
def test_forms_of_y(as_y):
    Y = np.arange(20.0) - 4.0
    np.testing.assert_allclose(leaf_of(as_y(Y), 4), (11 / 8, 19 / 8))


def test_y_as_model_data():
    with pm.Model() as model:
        Y = pm.Data("Y", np.arange(20.0))
        pmt.BART("mu", X, Y, m=4)
    assert float(forest_inputs(forest_of(model)[0]).leaf[1].data) == 19 / 8


def test_f_covers_the_range_of_y():
    Y = np.linspace(-3.0, 5.0, 20)
    with pm.Model() as model:
        mu = pmt.BART("mu", X, Y, m=30)
        draws = pm.draw(mu, 1500, random_seed=1)[:, 0]
    assert abs(draws.mean() - 1.0) < 4 * 2.0 / np.sqrt(1500)
    assert abs(draws.std() / 2.0 - 1) < 4 / np.sqrt(2 * 1500)
    assert model["mu"].name == "mu"


def test_an_explicit_leaf_wins_and_needs_no_y():
    assert leaf_of(None, 5, leaf=pmt.NormalLeaf(0.5, 0.25)) == (0.5, 0.25)
    assert leaf_of(np.arange(20.0), 5, leaf=pmt.NormalLeaf(0.5, 0.25)) == (0.5, 0.25)


@pytest.mark.parametrize("Y", [None, np.full(20, 3.0)])
def test_no_scale_is_an_error_that_says_what_to_give(Y):
    with pytest.raises(ValueError, match=r"Y.*leaf=pymc_trees\.NormalLeaf"):
        leaf_of(Y, 5)


SPECIES = {"species": ["a", "b", "c"], "bird": range(6)}


def classes_of(dims, coords=SPECIES, **settings):
    """Three outputs for six rows, by the names of their dimensions."""
    with pm.Model(coords=coords) as model:
        return pmt.BART("f", np.arange(6.0)[:, None], dims=dims, m=4, **settings), model


def test_dims_say_how_many_outputs():
    f, model = classes_of(["species", "bird"], leaf=pmt.NormalLeaf(0.0, 1.0))
    assert f.type.shape[0] in (3, None) and f.eval().shape == (3, 6)
    assert [v.name for v in model.free_RVs] == [f"f_{k}_forest" for k in range(3)]
    assert tuple(model.named_vars_to_dims["f"]) == ("species", "bird")
    one, _ = classes_of("bird", leaf=pmt.NormalLeaf(0.0, 1.0))
    assert one.eval().shape == (6,)


def test_dims_without_coords_say_what_to_give():
    with pytest.raises(
        ValueError, match=r"dims=\('kind', 'bird'\).*coords=\{'kind'.*shape=\(K, 6\)"
    ):
        classes_of(["kind", "bird"], leaf=pmt.NormalLeaf(0.0, 1.0))


def test_codes_of_classes_set_the_scale_of_logits():
    with pytest.warns(UserWarning, match="class codes"):
        f, model = classes_of(["species", "bird"], Y=[0, 1, 2, 2, 1, 0])
    settings = forest_inputs(model["f_0_forest"]).leaf
    assert tuple(float(v.data) for v in settings) == (0.0, 0.75)


@pytest.mark.parametrize("separate_trees", [True, False])
def test_a_column_for_each_output_sets_the_leaf_of_each(separate_trees):
    columns = [np.linspace(-1.0, 3.0, 6), np.linspace(10.0, 30.0, 6), np.arange(6) % 2]
    settings = {"separate_trees": separate_trees}
    _, model = classes_of(["species", "bird"], Y=np.column_stack(columns), **settings)
    wanted = np.array([[1.0, 20.0, 0.0], [4.0, 20.0, 6.0]]) / [[4.0], [8.0]]
    names = [f"f_{k}_forest" for k in range(3)] if separate_trees else ["f_forest"]
    found = [[v.eval() for v in forest_inputs(model[name]).leaf] for name in names]
    found = np.transpose(found) if separate_trees else np.reshape(found, (2, 3))
    np.testing.assert_allclose(found, wanted)
    with pytest.raises(ValueError, match=r"Y has shape \(6, 2\), but X has 6 rows"):
        classes_of(["species", "bird"], Y=np.ones((6, 2)))
