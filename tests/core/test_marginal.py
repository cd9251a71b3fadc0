"""What a forest says when only some columns are known, against a recursion over its nodes."""

from functools import cache

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from support.fitted import frame

import pymc_trees as pmt
from pymc_trees.core.value.evaluate import marginal
from pymc_trees.core.value.text import sent_left
from pymc_trees.posterior.reading.forests import ForestDraws

pytestmark = pytest.mark.usefixtures("quick_compile")


@cache
def prior(kind):
    """A forest with levels and missing cells, or of numbers with two values in a leaf; draws."""
    with pm.Model() as model:
        if kind == "mixed":
            pmt.BART("mu", frame(), m=3, alpha=0.99, beta=0.2, leaf=pmt.NormalLeaf(0.0, 1.0))
        else:
            X = np.random.default_rng(5).random((15, 3))
            leaf = pmt.NormalGammaLeaf(1.0, 3.0, 1.0)
            pmt.DecisionTree("mu", X, alpha=0.99, beta=0.2, leaf=leaf)
        found = pm.sample_prior_predictive(6, random_seed=3)
    return ForestDraws(xr.DataTree.from_dict({"posterior": found["prior"].to_dataset()}), model)


def twin(value, m, n_values, X_train, x, known):
    """Sum over trees at one row, and the deepest split on a column that is not known."""
    row, met = 0, 0

    def below(rows):
        nonlocal row, met
        here, row = row, row + 1
        if value[here, 0] < 0:
            return value[here, 1 : 1 + n_values]
        way, column = divmod(int(value[here, 0]), x.size)
        goes = sent_left(X_train[rows, column], way, value[here, 1])
        left, right = below(rows[goes]), below(rows[~goes])
        if known[column]:
            return left if sent_left(x[[column]], way, value[here, 1])[0] else right
        met += 1
        return goes.mean() * left + (1 - goes.mean()) * right

    return sum(below(np.arange(len(X_train))) for _ in range(m)), met


@pytest.mark.parametrize("kind", ["mixed", "two values"])
def test_the_kernel_is_a_recursion_over_the_nodes(kind):
    forest = prior(kind)
    every = np.array([[s >> j & 1 for j in range(3)] for s in range(8)], dtype=bool)
    m, n_values, X_train = forest.layout.m, forest.layout.n_values, forest.X_train
    assert n_values == (1 if kind == "mixed" else 2)
    X, unknown = X_train[::3].copy(), 0
    X[0, 0] = X_train[1, 0]  # a row that is not among the training rows
    for _, _, value in forest.each_draw():
        found = marginal(value, X, X_train, forest.sizes, every)
        assert found.shape == (8, len(X), n_values)
        for s, known in enumerate(every):
            for i, x in enumerate(X):
                want, met = twin(value, m, n_values, X_train, x, known)
                np.testing.assert_allclose(found[s, i], want, rtol=0, atol=1e-12)
                unknown += met
    assert unknown > 100


def test_all_columns_known_is_the_function_and_none_the_mean_over_training_rows():
    forest = prior("mixed")
    none_or_all = np.array([[False] * 3, [True] * 3])
    with pm.Model() as model:
        pmt.BART("mu", frame(), m=3, alpha=0.99, beta=0.2, leaf=pmt.NormalLeaf(0.0, 1.0))
    for _, _, value in forest.each_draw():
        none, f = marginal(value, forest.X_train, forest.X_train, forest.sizes, none_or_all)
        at_rows = model["mu"].eval({model["mu_forest"]: value})
        np.testing.assert_array_equal(f[:, 0], at_rows)
        np.testing.assert_allclose(none[:, 0], at_rows.mean(), rtol=0, atol=1e-12)
