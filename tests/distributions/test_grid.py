"""`n_cuts`: cuts on a grid of quantiles only."""

import numpy as np
import pymc as pm
import pytest
from support import twin
from support.small_models import bart_model, forest_of, sample, step_data

import pymc_trees as pmt
from pymc_trees.distributions.forest_inputs import declared, forest_inputs
from pymc_trees.distributions.tree_priors.read import make_grid

pytestmark = pytest.mark.usefixtures("quick_compile")


def grid_of(model):
    """Grid cuts of each column."""
    return declared(model["mu_forest"]).cuts


def cuts_in(value, layout):
    """(column, cut) of every split node."""
    nodes = value[: layout.max_nodes]
    return [(int(j), cut) for j, cut in nodes[nodes[:, 0] >= 0][:, :2]]


@pytest.mark.full
@pytest.mark.parametrize("n_cuts", [1, 4, 100])
def test_cuts_lie_on_the_grid_in_prior_and_posterior(n_cuts):
    model = bart_model(alpha=0.9, beta=0.5, n_cuts=n_cuts)
    layout = forest_of(model)[1]
    grid = grid_of(model)
    assert all(1 <= len(g) <= n_cuts for g in grid)
    with model:
        idata = sample(20, 20)
    values = [*pm.draw(model["mu_forest"], 10, random_seed=1)]
    values += [*idata.posterior["mu_forest"].values[:, ::3].reshape(-1, *layout.shape)]
    used = [c for value in values for c in cuts_in(value, layout)]
    assert len(used) > 20
    assert all(cut in grid[j] for j, cut in used)


@pytest.mark.full
def test_log_probability_of_sampled_forests():
    model = bart_model(alpha=0.9, beta=0.5, n_cuts=4)
    _, layout, X = forest_of(model)
    with model:
        idata = sample(6, 20)
    logp = model.compile_logp(vars=[model["mu_forest"]])
    mean, sd = (float(v.data) for v in forest_inputs(model["mu_forest"]).leaf)
    for value in idata.posterior["mu_forest"].values[:, -3:].reshape(-1, *layout.shape):
        trees = twin.read_trees(value, layout)
        expected = twin.log_tree_prior(trees, X, 0.9, 0.5, [0.5, 0.5], grid_of(model))
        values = np.array([v[0] for t in trees for v in twin.leaf_values(t)])
        expected += (-0.5 * ((values - mean) / sd) ** 2 - np.log(sd * np.sqrt(2 * np.pi))).sum()
        np.testing.assert_allclose(logp({"mu_forest": value}), expected, rtol=1e-9)


def test_quantiles(rng):
    X = rng.exponential(size=(1000, 1))
    [grid] = make_grid(X, 9)
    shares = [(X[:, 0] <= cut).mean() for cut in grid]
    np.testing.assert_allclose(shares, np.arange(1, 10) / 10, atol=0.01)


@pytest.mark.full
@pytest.mark.parametrize("column", [np.zeros(6), np.array([0.0, 0, 0, 0, 0, 1])])
def test_degenerate_columns(column):
    X = np.column_stack([column, np.arange(6.0)])
    grid = make_grid(X, 2)
    for j, cuts in enumerate(grid):
        varies = len(np.unique(X[:, j])) > 1
        assert (len(cuts) > 0) == varies
        for cut in cuts:
            assert (X[:, j] <= cut).any() and (X[:, j] > cut).any()
    with pm.Model():
        mu = pmt.BART("mu", X, np.arange(6.0), m=3, n_cuts=2)
        pm.Normal("y", mu, 0.5, observed=np.arange(6.0), shape=mu.shape)
        sample(10, 10)


@pytest.mark.full  # compiles the particles for 16-bit codes, which they count in bins
def test_more_than_255_cuts_use_wider_codes():
    rng = np.random.default_rng(0)
    X = rng.random((400, 1))
    y = np.sin(6 * X[:, 0])
    with pm.Model() as model:
        mu = pmt.BART("mu", X, y, m=3, n_cuts=300)
        pm.Normal("y", mu, 0.1, observed=y, shape=mu.shape)
        step = pmt.ParticleGibbs(proposal="optimal")
        idata = sample(20, 40, chains=1, step=step)
    layout = forest_of(model)[1]
    used = {c for value in idata.posterior["mu_forest"].values[0] for c in cuts_in(value, layout)}
    grid = set(grid_of(model)[0])
    assert len(grid) == 300 and {cut for _, cut in used} <= grid
    assert max(np.searchsorted(sorted(grid), [c for _, c in used])) > 255


@pytest.mark.parametrize("n_cuts", [0, -1, 2.5, True, "4", 70_000])
def test_bad_n_cuts(n_cuts):
    X, y = step_data(20)
    with pm.Model(), pytest.raises(ValueError, match="n_cuts"):
        pmt.BART("mu", X, y, n_cuts=n_cuts)
