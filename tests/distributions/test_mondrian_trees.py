"""`MondrianPrior` in a PyMC model: log-probability, draws, samplers, prediction, refusals."""

import math

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr
from scipy import stats
from support.check import check_value
from support.small_models import FAST, forest_of
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.distributions.forest_inputs import declared

pytestmark = pytest.mark.usefixtures("quick_compile")


def design(rng, n=16):
    """Columns of different widths, one constant, one of two values; two rows alike."""
    X = np.column_stack(
        [rng.normal(0, 3, n), rng.random(n), np.full(n, 2.0), rng.integers(0, 2, n)]
    )
    X[1] = X[0]
    return X


def read(value, layout):
    """Trees of a value by plain Python: (values,) or (column, cut, time, left, right)."""
    at = 0

    def node():
        nonlocal at
        fields = [float(v) for v in value[at]]
        at += 1
        if fields[0] == -1:
            return (fields[1 : 1 + layout.n_values],)
        left = node()
        return (int(fields[0]), fields[1], fields[-1], left, node())

    return [node() for _ in range(layout.m)]


def log_process(tree, X, lifetime, start=0.0):
    """Log density of a tree of a Mondrian process: each factor as the definition has it."""
    sides = np.ptp(X, axis=0)
    rate = sides.sum()
    if len(tree) == 1:
        return -rate * (lifetime - start)  # no split before the end
    column, cut, time, left, right = tree
    assert start < time < lifetime
    goes_left = X[:, column] <= cut
    assert goes_left.any() and not goes_left.all()
    here = stats.expon.logpdf(time - start, scale=1 / rate)  # waiting time
    here += math.log(sides[column] / rate)  # column
    here += stats.uniform.logpdf(cut, X[:, column].min(), sides[column])  # cut
    here += log_process(left, X[goes_left], lifetime, time)
    return here + log_process(right, X[~goes_left], lifetime, time)


def leaf_values(tree):
    return [tree[0]] if len(tree) == 1 else leaf_values(tree[3]) + leaf_values(tree[4])


def predict(tree, x):
    while len(tree) == 5:
        tree = tree[3] if x[tree[0]] <= tree[1] else tree[4]
    return tree[0]


@pytest.mark.parametrize("m, K", [(1, 1), (3, 1), (1, 3)])
def test_log_probability_of_draws(m, K, rng):
    X = design(rng)
    leaf = pmt.NormalLeaf(0.2, 1.4) if K == 1 else pmt.DirichletLeaf(2.0, K)
    with pm.Model() as model:
        lifetime = pm.Gamma("lifetime", 4, 10)
        pmt.Forest("forest", X, m=m, leaf=leaf, tree_prior=pmt.MondrianPrior(lifetime))
    rv, layout, _ = forest_of(model, "forest")
    stamp = declared(rv).fingerprint
    assert layout.fields == 1 + max(K, 2)
    logp = model.compile_logp(vars=[rv])
    transform = model.rvs_to_values[lifetime].name
    sizes = set()
    for value, given in zip(*pm.draw([rv, lifetime], 15, random_seed=5)):
        assert check_value(value, X, layout, stamp) == []
        trees = read(value, layout)
        values = np.array([v for tree in trees for v in leaf_values(tree)])
        last = max([n[2] for n in map(_latest, trees)], default=0.0)
        for end in (given, 1.5 * given, 0.999 * last + 1e-9):
            found = logp({"forest": value, transform: np.log(end)})
            if end < last:
                assert found == -np.inf
                continue
            expected = sum(log_process(tree, X, end) for tree in trees)
            if K == 1:
                expected += stats.norm.logpdf(values, 0.2, 1.4).sum()
            else:
                expected += sum(
                    stats.dirichlet.logpdf(v / v.sum(), np.full(K, 2 / K)) for v in values
                )
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-8)
        sizes.add(len(values))
    assert len(sizes) > 4


def _latest(tree):
    """The split with the greatest time, below and including a node."""
    if len(tree) == 1:
        return (0, 0, 0.0)
    return max((tree, _latest(tree[3]), _latest(tree[4])), key=lambda node: node[2])


def test_the_check_sees_wrong_times(rng):
    from pymc_trees.core.value.fields import compute_checksum

    X = design(rng)
    with pm.Model() as model:
        pmt.Forest("forest", X, m=1, leaf=pmt.NormalLeaf(0, 1), tree_prior=pmt.MondrianPrior(0.6))
    rv, layout, _ = forest_of(model, "forest")
    stamp = declared(rv).fingerprint
    for value in pm.draw(rv, 10, random_seed=2):
        if value[0, 0] < 0 or value[1, 0] < 0:
            continue
        for change in (1e-3, -1.0, 100.0, np.nan):
            wrong = value.copy()
            wrong[1, 2] += change
            wrong[layout.max_nodes].reshape(-1)[0] = compute_checksum(
                wrong, layout.max_nodes, stamp
            )
            assert any("time" in sentence for sentence in check_value(wrong, X, layout, stamp))


STEPS = {
    "cgm": pmt.CGM,
    "growprune": pmt.GrowPrune,
    "pgbart": lambda: pmt.ParticleGibbs(num_particles=4, proposal="empirical"),
}


@pytest.mark.parametrize("step", tiers(STEPS, quick=["cgm"]))
def test_samplers_prediction_and_files(step, rng, tmp_path):
    X = design(rng, 24)
    y = np.sign(X[:, 0]) + rng.normal(0, 0.3, 24)
    with pm.Model() as model:
        data = pm.Data("X", X)
        mu = pmt.DecisionTree("mu", data, y, tree_prior=pmt.MondrianPrior(0.5), max_nodes=47)
        pm.Normal("y", mu, 0.4, observed=y, shape=mu.shape)
        idata = pm.sample(
            30, tune=30, chains=1, step=STEPS[step](), random_seed=4, **FAST,
        )  # fmt: skip
        idata.to_netcdf(tmp_path / "fit.nc", engine="h5netcdf")
        new = rng.normal(0, 4, (7, 4))
        pm.set_data({"X": new})
        with xr.open_datatree(tmp_path / "fit.nc", engine="h5netcdf") as saved:
            pmt.check_draws(saved, model)
            pred = pm.sample_posterior_predictive(
                saved, var_names=["mu"], predictions=True, progressbar=False, random_seed=1
            )
    rv, layout, _ = forest_of(model)
    stamp = declared(rv).fingerprint
    found = pred.predictions["mu"].values[0]
    shapes = set()
    for value, at_new, at_X in zip(
        idata.posterior["mu_forest"].values[0], found, idata.posterior["mu"].values[0]
    ):
        value = np.ascontiguousarray(value)
        assert check_value(value, X, layout, stamp) == []
        [tree] = read(value, layout)
        np.testing.assert_array_equal(at_new, [predict(tree, x)[0] for x in new])
        np.testing.assert_allclose(at_X, [predict(tree, x)[0] for x in X], rtol=1e-8, atol=1e-10)
        shapes.add(value[:, 0].tobytes())
    assert len(shapes) > 3


@pytest.mark.full
def test_a_random_lifetime_keeps_its_prior(rng):
    """Without data, trees and lifetime are drawn in turn; errors of means in their ESS, below 5."""
    import arviz_stats as azs

    X = design(rng)
    with pm.Model() as model:
        lifetime = pm.Gamma("lifetime", 4, 10)
        pmt.DecisionTree(
            "mu", X, leaf=pmt.NormalLeaf(0, 1), tree_prior=pmt.MondrianPrior(lifetime), max_nodes=31
        )
        steps = [pmt.CGM(), pm.Slice([lifetime])]
        idata = pm.sample(
            4000, tune=200, chains=2, cores=1, step=steps, random_seed=8, var_names=["lifetime"],
            **FAST,
        )  # fmt: skip
        drawn = pm.draw(model["mu_forest"], 4000, random_seed=3)
    draws = idata.posterior["lifetime"].values
    error = draws.std() / np.sqrt(azs.ess(draws, method="mean"))
    assert abs(draws.mean() - 0.4) < 5 * error
    leaves = idata.sample_stats["n_leaves"].values
    error = leaves.std() / np.sqrt(azs.ess(leaves, method="mean"))
    exact = (drawn[:, :31, 0] == -1).sum(axis=1)
    assert abs(leaves.mean() - exact.mean()) < 5 * np.hypot(error, exact.std() / np.sqrt(4000))


X_SMALL = np.array([[0.0, 1.0], [1.0, 0.5], [3.0, 0.2]])


@pytest.mark.parametrize(
    "settings, error, message",
    [
        ({"alpha": 0.9}, ValueError, "alpha and beta"),
        ({"beta": 3.0}, ValueError, "alpha and beta"),
        ({"split_prior": [0.5, 0.5]}, ValueError, "split_prior"),
        ({"n_cuts": 5}, ValueError, "n_cuts"),
        ({"tree_prior": pmt.MondrianPrior}, TypeError, "tree_prior is the class"),
        ({"tree_prior": 2.0}, TypeError, "tree_prior"),
        ({"split_rules": ["continuous", "onehot"]}, NotImplementedError, r"tree_prior.*\[1\]"),
        ({"X": [[0.0, np.nan], [1.0, 0.5], [3.0, 0.2]]}, NotImplementedError, r"tree_prior.*\[1\]"),
    ],
)
@pytest.mark.parametrize("front_end", [pmt.BART, pmt.DecisionTree])
def test_what_does_not_go_with_it(front_end, settings, error, message):
    settings = {"X": X_SMALL, "tree_prior": pmt.MondrianPrior(1.0)} | settings
    with pm.Model(), pytest.raises(error, match=message):
        front_end("mu", leaf=pmt.NormalLeaf(0, 1), **settings)


@pytest.mark.parametrize("lifetime", [0, -1.0, np.inf, np.nan])
def test_lifetimes_that_are_not_positive(lifetime):
    with pytest.raises(ValueError, match="lifetime.*positive"):
        pmt.MondrianPrior(lifetime)


@pytest.mark.parametrize("lifetime", ["1", None, True, [1.0], pt.vector()])
def test_lifetimes_that_are_no_numbers(lifetime):
    with pytest.raises(TypeError, match="lifetime"):
        pmt.MondrianPrior(lifetime)
