"""A saved file predicts the same in a new process, and is small."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from support.small_models import bart_model, sample, step_data

import pymc_trees as pmt
from pymc_trees.core.value.fields import Layout
from pymc_trees.distributions.capacity import default_max_nodes

NEW = np.random.default_rng(6).random((12, 2))

SCRIPT = """
import sys
import numpy as np, pymc as pm, pytensor, xarray as xr
import pymc_trees as pmt
sys.path.insert(0, sys.argv[3])
from support.small_models import bart_model

idata = xr.open_datatree(sys.argv[1], engine="h5netcdf")
with pytensor.config.change_flags(mode="FAST_COMPILE"), bart_model(sigma=None) as model:
    pmt.check_draws(idata, model)
    names = {"var_names": ["mu", "y"], "predictions": True, "progressbar": False, "random_seed": 7}
    again = pm.sample_posterior_predictive(idata, **names)
    pm.set_data({"X": np.load(sys.argv[2])["new"]})
    pred = pm.sample_posterior_predictive(idata, **names)
np.savez(
    sys.argv[2],
    again=again.predictions["mu"].values,
    mu=pred.predictions["mu"].values,
    y=pred.predictions["y"].values,
)
"""


@pytest.fixture(scope="module")
def fitted(quick_compile):
    model = bart_model(sigma=None)
    with model:
        idata = sample(15, 15)
        pm.set_data({"X": NEW})
        pred = pm.sample_posterior_predictive(
            idata, var_names=["mu", "y"], predictions=True, progressbar=False, random_seed=7
        )
    return model, idata, pred


@pytest.mark.parametrize("packed", [False, pytest.param(True, marks=pytest.mark.versions)])
def test_a_new_process_predicts_the_same(fitted, packed, tmp_path):
    _, idata, pred = fitted
    if packed:
        pmt.save(idata, tmp_path / "fit.nc")
    else:
        idata.to_netcdf(tmp_path / "fit.nc", engine="h5netcdf")
    np.savez(tmp_path / "arrays.npz", new=NEW)
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-c",
            SCRIPT,
            tmp_path / "fit.nc",
            tmp_path / "arrays.npz",
            tests,
        ],
        cwd=tests.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = np.load(tmp_path / "arrays.npz")
    np.testing.assert_array_equal(found["again"], idata.posterior["mu"].values)
    np.testing.assert_array_equal(found["mu"], pred.predictions["mu"].values)
    np.testing.assert_array_equal(found["y"], pred.predictions["y"].values)


def test_compression_is_lossless_and_saves_most(fitted, tmp_path):
    _, idata, _ = fitted
    idata.to_netcdf(tmp_path / "plain.nc", engine="h5netcdf")
    assert pmt.save(idata, tmp_path / "packed.nc") == tmp_path / "packed.nc"
    read = xr.open_datatree(tmp_path / "packed.nc", engine="h5netcdf")
    for group in idata.children:
        xr.testing.assert_equal(read[group].to_dataset(), idata[group].to_dataset())
    sizes = {p.stem: p.stat().st_size for p in tmp_path.iterdir()}
    assert sizes["packed"] < 0.6 * sizes["plain"]
    pmt.check_draws(read, fitted[0])
    read.close()


DRAWS = """
import resource, signal, sys
import numpy as np, xarray as xr
import pymc_trees as pmt

def draws(n):
    values = np.random.default_rng(n).random(n)
    return xr.DataTree.from_dict({"posterior": xr.Dataset({"mu": ("draw", values)})})

pmt.save(draws(1000), sys.argv[1])
"""
FULL = (
    DRAWS
    + """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    pmt.save(draws(100_000), sys.argv[1])
except OSError as error:
    assert "could not be written" in str(error) and "is unchanged" in str(error), error
else:
    raise AssertionError("800 kB were written where 50 kB are allowed")
"""
)
KILLED = (
    DRAWS
    + """
import os
os.fsync = lambda handle: os._exit(9)
pmt.save(draws(100_000), sys.argv[1])
"""
)


@pytest.mark.parametrize(("script", "status", "left"), [(FULL, 0, 1), (KILLED, 9, 2)])
def test_what_cannot_be_completed_leaves_the_file_before(script, status, left, tmp_path):
    if sys.platform == "win32":
        pytest.skip("Windows has no limit of a process's files")
    path = tmp_path / "fit.nc"
    run = [sys.executable, "-c", script, path]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert len(list(tmp_path.iterdir())) == left  # a killed process cannot tidy up
    with xr.open_datatree(path) as found:
        values = np.random.default_rng(1000).random(1000)
        np.testing.assert_array_equal(found["posterior"]["mu"].values, values)


def test_an_interrupt_leaves_the_file_before(tmp_path, monkeypatch):
    def interrupted(handle):
        raise KeyboardInterrupt

    draws = xr.DataTree.from_dict({"posterior": xr.Dataset({"mu": ("draw", [1.0, 2.0])})})
    path = pmt.save(draws, str(tmp_path / "fit.nc"))
    monkeypatch.setattr("os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pmt.save(xr.DataTree.from_dict({}), path)
    assert list(tmp_path.iterdir()) == [path]
    with xr.open_datatree(path) as found:
        assert found.identical(draws)


def test_a_thousand_draws_of_two_hundred_trees_stay_below_60_mb():
    X, y = step_data(1000, 5)
    with pm.Model() as model:
        pmt.BART("mu", X, y, m=200)
    layout = model["mu_forest"].owner.op.layout
    assert layout == Layout(200, default_max_nodes(200, 1000, 0.95, 2.0), 1, 1000)
    rows, fields = layout.shape
    assert rows * fields * 8 * 1000 < 60e6
    assert pm.draw(model["mu_forest"], random_seed=1).nbytes == rows * fields * 8
