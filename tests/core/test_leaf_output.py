"""A leaf whose outputs differ from row to row: every sum over trees asks the leaf."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.design import make_design
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import make_trees
from pymc_trees.core.leaves.contract import register, subtract_outputs
from pymc_trees.core.moves.problem import make_workspace
from pymc_trees.core.priors.cgm import make_prior
from pymc_trees.core.samplers.prior_draw import draw_forest
from pymc_trees.core.value.encode import encode, fit_of
from pymc_trees.core.value.evaluate import evaluate
from pymc_trees.core.value.fields import Layout, sizes


class Line(NamedTuple):
    """One output, ``values[0] + values[1] x``, with prior draws for the tests."""

    x: np.ndarray


@njit(cache=True)
def _n_stats(leaf):
    return 1


@njit(cache=True)
def _n_outputs(leaf, n_values):
    return 1


@njit(cache=True)
def _leaf_output(leaf, values, row):
    return (values[0] + values[1] * leaf.x[row],)


@njit(cache=True)
def _draw_values(leaf, rng, stats, out):
    for k in range(out.size):
        out[k] = rng.standard_normal()


register(
    Line,
    n_stats=_n_stats,
    n_outputs=_n_outputs,
    leaf_output=_leaf_output,
    draw_values=_draw_values,
)


def test_lines_are_summed_at_training_rows_and_at_new_ones(rng):
    n, m, stamp = 12, 3, 5.0
    X, new = rng.random((n, 2)), rng.random((7, 2))
    layout = Layout(m, 100, 2, n)
    trees = make_trees(m, 100, 2, n)
    design, prior = make_design(X), make_prior(0.95, 0.5, np.full(2, 0.5))
    work, line = make_workspace(100, 1, design), Line(X[:, 1].copy())
    assert draw_forest(rng, trees, design, prior, line, work.nodes, work.rows, work.buffer)
    fit = np.empty((n, 1))
    fit_of(line, trees, fit)
    by_hand = sum(trees.values[trees.leaf_of[t]] for t in range(m))
    np.testing.assert_allclose(fit[:, 0], by_hand[:, 0] + by_hand[:, 1] * X[:, 1])

    value = encode(trees, design, prior, sizes(layout), stamp, work.nodes)
    assert np.array_equal(evaluate(value, X, X, line, sizes(layout), stamp), fit)
    walked = evaluate(value, X[::-1].copy(), X, Line(X[::-1, 1].copy()), sizes(layout), stamp)
    np.testing.assert_allclose(walked[::-1], fit)
    assert evaluate(value, new, X, Line(new[:, 1].copy()), sizes(layout), stamp).shape == (7, 1)

    for t in range(m):
        subtract_outputs(line, trees.values, trees.leaf_of[t], fit)
    np.testing.assert_allclose(fit, 0.0, atol=1e-12)
