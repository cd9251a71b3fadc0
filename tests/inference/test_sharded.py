"""`sample_sharded` as users see it: draws, sigma, predictions, and what is said when it ends early.

Shares of sigma are averages over 12 chains: beyond 7 standard errors of a t law with 11 degrees of
freedom one in 40,000.
"""

import math
import os
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from support import oracle as o
from support.naive.batches import gap
from support.naive.laws import PROBLEMS, leaf_of
from support.sharded_models import friedman_like, large_model
from support.small_models import assert_same_draws, bart_model, step_data

import pymc_trees as pmt
from pymc_trees.distributions.capacity import ForestTooLargeError
from pymc_trees.sharded import model as reading
from pymc_trees.sharded import sample_sharded as module
from pymc_trees.sharded.transports import LocalShards, ShardLostError

pytestmark = pytest.mark.usefixtures("quick_compile")
TESTS = Path(__file__).parents[1]
PACKAGES = {"dask": "distributed", "ray": "ray"}
RUN = {"draws": 6, "tune": 6, "chains": 2, "random_seed": 3, "progressbar": False}


@pytest.mark.parametrize("settings", [{}, {"n_cuts": 7}, {"m": 1}])
def test_the_number_of_shards_changes_no_bit(settings):
    model = bart_model(sigma=None, **settings)
    expected = pmt.sample_sharded(model, 1, **RUN)
    assert expected.attrs["shards"] == 1
    for n_shards in (2, 3, 8):
        assert_same_draws(pmt.sample_sharded(model, n_shards, **RUN), expected)


def test_chains_do_not_depend_on_each_other():
    model = bart_model(sigma=None, m=1)
    more = pmt.sample_sharded(model, 2, **RUN | {"chains": 3})
    found = pmt.sample_sharded(model, 2, **RUN)
    np.testing.assert_array_equal(
        found.posterior["mu_forest"], more.posterior["mu_forest"].sel(chain=[0, 1])
    )
    assert not np.array_equal(*found.posterior["sigma"].to_numpy())


def test_draws_are_forests_of_the_model():
    """Values have the checksums, the function and the log-probability that PyMC sees."""
    model = bart_model(sigma=None, n=40)
    idata = pmt.sample_sharded(model, 3, **RUN, sweeps=3)
    assert set(idata.posterior.data_vars) == {"mu_forest", "sigma"}
    pmt.check_draws(idata, model)
    _, y = step_data(40)
    for name in ("mu_forest", "sigma"):
        assert np.isfinite(idata.posterior[name]).all()
    with model:
        again = pm.compute_deterministics(idata.posterior, progressbar=False)
        logs = pm.compute_log_likelihood(idata, extend_inferencedata=False, progressbar=False)
    rows = logs["y"].sum("y_dim_0").to_numpy()
    sd = idata.posterior["sigma"].to_numpy()[..., None]
    f = again["mu"].to_numpy()
    np.testing.assert_allclose(stats.norm(f, sd).logpdf(y).sum(-1), rows, rtol=1e-10)
    shown = pmt.sample_sharded(model, 3, **RUN, sweeps=3, var_names=["mu"])
    np.testing.assert_allclose(shown.posterior["mu"], f, rtol=1e-12)


@pytest.mark.parametrize(("sigma", "sweeps"), [(0.5, 1), (None, 1), (None, 3)])
def test_the_log_likelihood_is_that_of_the_draw(sigma, sweeps):
    model = bart_model(sigma=sigma)
    idata = pmt.sample_sharded(model, 2, sweeps=sweeps, **RUN)
    with model:
        rows = pm.compute_log_likelihood(idata, extend_inferencedata=False, progressbar=False)
    np.testing.assert_allclose(
        idata.sample_stats["log_likelihood"], rows["y"].sum("y_dim_0"), rtol=1e-8
    )


def test_predictions_at_other_rows(tmp_path):
    """In another process, from a file."""
    X, f, y = friedman_like()
    model = large_model(y, X)
    idata = pmt.sample_sharded(model, 4, draws=100, tune=200, chains=2, random_seed=1,
                               progressbar=False)  # fmt: skip
    with model:
        pm.set_data({"X": X[:50]})
        found = pm.sample_posterior_predictive(
            idata, var_names=["mu"], progressbar=False, predictions=True
        )
    error = found.predictions["mu"].mean(("chain", "draw")).to_numpy() - f[:50]
    assert np.sqrt(np.mean(error**2)) < 0.4
    assert 0.4 < float(idata.posterior["sigma"].mean()) < 0.6
    inclusion = idata.sample_stats["variable_inclusion"].mean(("chain", "draw")).to_numpy()
    assert inclusion[2] < inclusion[:2].min()
    pmt.save(idata, tmp_path / "draws.nc")
    expected = found.predictions["mu"].to_numpy()
    code = f"""
import numpy as np, pymc as pm, xarray as xr
from support.sharded_models import friedman_like, large_model
X, f, y = friedman_like()
idata = xr.open_datatree({str(tmp_path / "draws.nc")!r}, engine="h5netcdf")
with large_model(y, X):
    pm.set_data({{"X": X[:50]}})
    found = pm.sample_posterior_predictive(
        idata, var_names=["mu"], progressbar=False, predictions=True)
np.save({str(tmp_path / "found.npy")!r}, found.predictions["mu"])
"""
    subprocess.run([sys.executable, "-c", code], check=True, env=_environment(), timeout=300)
    np.testing.assert_array_equal(np.load(tmp_path / "found.npy"), expected)


def test_sigma_and_trees_follow_their_joint_posterior():
    """The marginal law of sigma, by listing all partitions at each value of a grid."""
    problem = PROBLEMS["gaps"]
    with pm.Model() as model:
        leaf = pmt.NormalLeaf(problem.mean, problem.sd)
        prior = {name: problem.prior[name] for name in ("alpha", "beta")}
        mu = pmt.BART("mu", problem.X, m=1, leaf=leaf, **prior)
        pm.Normal("y", mu, pm.HalfNormal("sigma", 1.0), observed=problem.y)
    idata = pmt.sample_sharded(
        model, 2, draws=1000, tune=100, chains=12, random_seed=8, progressbar=False
    )
    grid = np.exp(np.linspace(-5.0, 2.0, 700))
    partitions = o.partition_prior(problem.X, **problem.prior)
    logs = []
    for sigma in grid:
        log_leaf = leaf_of(replace(problem, sigma=sigma), "normal")
        known = {rows: log_leaf(rows) for part in partitions for rows in part}
        terms = [math.log(p) + sum(known[rows] for rows in part) for part, p in partitions.items()]
        logs.append(np.logaddexp.reduce(terms) + stats.halfnorm.logpdf(sigma) + np.log(sigma))
    weights = np.exp(np.array(logs) - max(logs))
    below = np.cumsum(weights) / weights.sum()
    cuts = np.interp([0.1, 0.3, 0.5, 0.7, 0.9], below, grid)
    shares = (idata.posterior["sigma"].to_numpy()[..., None] <= cuts).mean(axis=1)
    found = gap(shares, [0.1, 0.3, 0.5, 0.7, 0.9])
    assert found.within(7.0, 0.04), found


class Broken(LocalShards):
    """Shards that do not answer after some round trips, as `error` says."""

    error: BaseException = ShardLostError("A shard does not respond: gone.")
    rounds = 60

    def answers(self, messages):
        self.rounds -= 1
        if self.rounds == 0:
            raise self.error
        return super().answers(messages)


def broken(monkeypatch, error, rounds=60):
    def make(shards, known, chains):
        held = Broken(known, shards, chains)
        held.error, held.rounds = error, rounds
        return held

    monkeypatch.setattr(module, "make_shards", make)


def check_kept(found, model):
    """Draws that are the first of a whole run."""
    expected = pmt.sample_sharded(model, 2, **RUN)
    made = found.posterior.sizes["draw"]
    assert 1 <= made < RUN["draws"]
    for name in expected.posterior.data_vars:
        np.testing.assert_array_equal(
            found.posterior[name], expected.posterior[name].isel(draw=slice(made))
        )


def test_a_lost_shard_leaves_the_draws_made_before(monkeypatch):
    model = bart_model(sigma=None)
    with monkeypatch.context() as patch:
        broken(patch, ShardLostError("A shard does not respond: gone."))
        with pytest.raises(ShardLostError, match=r"(?s)does not respond.*error.idata") as caught:
            pmt.sample_sharded(model, 2, **RUN)
    check_kept(caught.value.idata, model)


def test_without_draws_nothing_is_promised(monkeypatch):
    broken(monkeypatch, ShardLostError("A shard does not respond: gone."), rounds=5)
    with pytest.raises(ShardLostError) as caught:
        pmt.sample_sharded(bart_model(sigma=None), 2, **RUN)
    assert caught.value.idata is None and "idata" not in str(caught.value)


def test_an_interrupt_returns_the_draws_made_before(monkeypatch):
    model = bart_model(sigma=None)
    with monkeypatch.context() as patch:
        broken(patch, KeyboardInterrupt())
        with pytest.warns(UserWarning, match="Interrupted: the result holds"):
            found = pmt.sample_sharded(model, 2, **RUN)
    check_kept(found, model)


def test_a_forest_without_room_says_so():
    X, y = step_data(200)
    with pm.Model() as model:
        mu = pmt.BART("mu", X, y, m=3, max_nodes=8, alpha=0.99, beta=0.0)
        pm.Normal("y", mu, 0.05, observed=y)
    with pytest.raises(ForestTooLargeError, match=r"mu_forest outgrew max_nodes=8"):
        pmt.sample_sharded(model, 2, **RUN | {"draws": 100})


def test_residuals_beyond_their_range_are_no_draws(monkeypatch):
    """A unit that is far too fine stands for a leaf prior that says nothing of the draws."""
    fine = reading.unit_of
    monkeypatch.setattr(reading, "unit_of", lambda size, n: fine(size * 2.0**-16, n))
    with pytest.raises(FloatingPointError, match="outgrew the range that y and the leaf"):
        pmt.sample_sharded(bart_model(sigma=None), 2, **RUN)


def test_a_log_normal_is_a_normal_of_logs():
    X, y = step_data(30)

    def drawn(law, observed):
        with pm.Model() as model:
            mu = pmt.BART("mu", X, y, m=4)
            law("y", mu, pm.HalfNormal("sigma", 1), observed=observed, shape=mu.shape)
        return pmt.sample_sharded(model, 2, **RUN)

    found, expected = drawn(pm.LogNormal, np.exp(y)), drawn(pm.Normal, y)
    np.testing.assert_allclose(found.posterior["sigma"], expected.posterior["sigma"], rtol=1e-6)
    np.testing.assert_allclose(
        found.sample_stats["log_likelihood"],
        expected.sample_stats["log_likelihood"] - y.sum(),
        rtol=1e-6,
    )


def test_terms_beside_the_forest_are_taken_off():
    X, y = step_data(30)
    line = np.linspace(0, 5, 30)

    def drawn(offset):
        with pm.Model() as model:
            mu = pmt.BART("mu", X, y, m=4)
            pm.Normal("y", mu + offset, 0.5, observed=y + offset)
        return pmt.sample_sharded(model, 2, **RUN).posterior["mu_forest"].to_numpy()

    np.testing.assert_allclose(drawn(line)[..., 1], drawn(0.0 * line)[..., 1], rtol=1e-6)


def _environment():
    """Of another process, which has no `quick_compile` but this."""
    flags = f"{os.environ.get('PYTENSOR_FLAGS', '')},mode=FAST_COMPILE".lstrip(",")
    paths = os.pathsep.join([str(TESTS.parent), str(TESTS)])
    return os.environ | {"PYTENSOR_FLAGS": flags, "PYTHONPATH": paths}


@pytest.mark.full
@pytest.mark.parametrize("what", ["draws", "lost"])
@pytest.mark.parametrize("cluster", PACKAGES)
def test_shards_on_a_cluster(cluster, what):
    """Two processes: the draws of shards in this one, and the death of one of them."""
    if find_spec(PACKAGES[cluster]) is None:
        pytest.skip(f"{PACKAGES[cluster]} is not installed: pip install 'pymc_trees[{cluster}]'")
    # Under `uv run`, Ray would build the environment anew for its workers: minutes.
    environment = _environment() | {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
    done = subprocess.run(
        [sys.executable, TESTS / "support" / "sharded_cluster.py", cluster, what],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-5000:]
