"""Targets whose numbers are far from those of the trees, and graphs with shapes in them."""

import cloudpickle
import numpy as np
import pymc as pm
import pytest

import pymc_trees as pmt
from pymc_trees.core.leaves.contract import ConstantLeaf
from pymc_trees.core.value.encode import fit_of
from pymc_trees.targets.graph import ForestUseError


def run(step, point, sweeps):
    step.setup_chain(np.random.default_rng(1), sweeps, 0)
    for _ in range(sweeps):
        point, _ = step.step(point)
    return point


def lost(step):
    """Largest difference between the outputs a step keeps and the sum of its trees."""
    state = step.states[0].forest
    walked = np.empty_like(state.fit)
    fit_of(ConstantLeaf(1), state.trees, walked)
    return np.abs(walked - state.fit).max()


def test_small_slopes_do_not_eat_the_trees():
    rng = np.random.default_rng(0)
    X = rng.random((30, 2))
    slope = np.where(np.arange(30) % 3 == 0, 1e-18, 1.0)
    y = slope * X[:, 0] + 0.1 * rng.normal(size=30)
    with pm.Model() as model:
        mu = pmt.BART("mu", X, leaf=pmt.NormalLeaf(0, 0.3), m=5)
        pm.Normal("y", mu * slope, 0.1, observed=y, shape=mu.shape)
        step = pmt.CGM()
        run(step, model.initial_point(), 50)
    assert lost(step) < 1e-10


def test_slope_is_that_of_the_graph_beside_a_large_offset():
    """A difference of two evaluations would find 0 here."""
    X = np.linspace(0, 1, 20)[:, None]
    with pm.Model() as model:
        mu = pmt.BART("mu", X, leaf=pmt.NormalLeaf(0, 1), m=2)
        pm.Normal("y", 1e-17 * mu + 5.0, 1.0, observed=np.zeros(20), shape=mu.shape)
        step = pmt.CGM()
        point = model.initial_point()
    [forest] = step.forests
    _, (_, offset, _, slope) = forest.target.at(point)
    assert np.all(offset == 5.0) and slope == pytest.approx(np.full(20, 1e-17))


def test_one_far_offset_leaves_no_trace():
    rng = np.random.default_rng(0)
    X = rng.random((30, 2))
    with pm.Model() as model:
        mu = pmt.BART("mu", X, leaf=pmt.NormalLeaf(0, 0.3), m=5)
        offset = pm.Normal("offset")
        pm.Normal("y", mu + offset, 0.1, observed=X[:, 0], shape=mu.shape)
        step = pmt.CGM()
        point = run(step, {**model.initial_point(), "offset": np.array(1e13)}, 1)
        point, _ = step.step({**point, "offset": np.array(0.0)})
    assert lost(step) < 1e-10


def test_shape_of_the_function_is_not_a_use_of_it():
    X = np.linspace(0, 1, 20)[:, None]
    with pm.Model() as model:
        mu = pmt.BART("mu", X, leaf=pmt.NormalLeaf(0, 1), m=2)
        sd = pm.HalfNormal("sd", 1.0, shape=mu.shape)
        pm.Normal("y", mu, sd, observed=np.zeros(20), shape=mu.shape)
        step = pmt.CGM()
        point, _ = step.step(model.initial_point())
    assert np.isfinite(point["mu_forest"]).all()


def test_inputs_that_are_not_data_are_refused():
    X = np.linspace(0, 1, 20)[:, None]
    with pm.Model():
        z = pm.Normal("z", shape=(20, 1))
        forest = pmt.Forest("t", X, m=1, leaf=pmt.NormalLeaf(0, 1))
        pm.Normal("y", pmt.evaluate(forest, z), 1.0, observed=np.zeros(20))
        with pytest.raises(ForestUseError, match="inputs must be data"):
            pmt.CGM([forest])


def test_sigma_that_vanishes_is_an_error():
    X = np.linspace(0, 1, 20)[:, None]
    with pm.Model() as model:
        mu = pmt.BART("mu", X, leaf=pmt.NormalLeaf(0, 1), m=2)
        sigma = pm.HalfNormal("sigma")
        pm.Normal("y", mu, sigma, observed=np.zeros(20), shape=mu.shape)
        step = pmt.CGM()
        point = {**model.initial_point(), "sigma_log__": np.array(-400.0)}
        with pytest.raises(ValueError, match="sigma .* must be positive"):
            step.step(point)


def test_a_model_read_from_bytes_brings_the_step_methods():
    import subprocess
    import sys
    import tempfile
    from pathlib import Path

    X = np.linspace(0, 1, 20)[:, None]
    with pm.Model() as model:
        mu = pmt.BART("mu", X, leaf=pmt.NormalLeaf(0, 1), m=2)
        pm.Normal("y", mu, 1.0, observed=np.zeros(20), shape=mu.shape)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        path.write_bytes(cloudpickle.dumps(model))
        code = (
            "import sys, cloudpickle, pymc.step_methods as s;"
            "cloudpickle.loads(open(sys.argv[1], 'rb').read());"
            "print([m.__name__ for m in s.STEP_METHODS])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
        )
    assert "CGM" in done.stdout
