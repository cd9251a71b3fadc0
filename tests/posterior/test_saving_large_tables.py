"""Draws of a table on disk, saved without it, predict in another process that has the table."""

import subprocess
import sys

import numpy as np
import polars as pl
import pymc as pm
import pytest

import pymc_trees as pmt

NEW = np.random.default_rng(6).random((12, 2))

SCRIPT = """
import sys
import numpy as np, polars as pl, pymc as pm, pytensor, xarray as xr
import pymc_trees as pmt

fit, table, new, out = sys.argv[1:]
idata = xr.open_datatree(fit, engine="h5netcdf")
assert "constant_data" not in idata.children
with pytensor.config.change_flags(mode="FAST_COMPILE"):
    with pm.Model() as model:
        X = pl.scan_parquet(table)
        mu = pmt.BART("mu", X, m=3, leaf=pmt.NormalLeaf(0.0, 1.0), n_cuts=7)
        pm.Normal("y", mu, 0.5, observed=np.zeros(40), shape=mu.shape)
    pmt.check_draws(idata, model)
    found = pmt.predictions(idata, model, np.load(new), progressbar=False)
np.save(out, found["prediction"].values)
"""


def declared(table, y):
    with pm.Model() as model:
        mu = pmt.BART("mu", pl.scan_parquet(table), m=3, leaf=pmt.NormalLeaf(0.0, 1.0), n_cuts=7)
        pm.Normal("y", mu, 0.5, observed=y, shape=mu.shape)
    return model


@pytest.fixture(scope="module")
def fitted(quick_compile, tmp_path_factory):
    """Folder of a table, another of other numbers, a saved fit; what the fit predicts."""
    folder = tmp_path_factory.mktemp("tables")
    X = np.random.default_rng(0).random((40, 2))
    for name, values in (("X", X), ("other", X + np.eye(40, 2))):
        pl.DataFrame(values, schema=["a", "b"]).write_parquet(folder / f"{name}.parquet")
    model = declared(folder / "X.parquet", np.sin(6 * X[:, 0]))
    with model:
        idata = pm.sample(
            10, tune=10, chains=2, cores=1, random_seed=1, progressbar=False, quiet=True
        )
    pmt.save(idata, folder / "fit.nc")
    np.save(folder / "new.npy", NEW)
    expected = pmt.predictions(idata, model, NEW, progressbar=False)["prediction"].values
    return folder, expected


def run(folder, table):
    files = [folder / "fit.nc", folder / table, folder / "new.npy", folder / "found.npy"]
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, *files], capture_output=True, text=True, check=False
    )


def test_a_new_process_predicts_the_same(fitted):
    folder, expected = fitted
    done = run(folder, "X.parquet")
    assert done.returncode == 0, done.stderr
    assert np.ptp(expected) > 0.1
    np.testing.assert_array_equal(np.load(folder / "found.npy"), expected)


def test_a_table_of_other_numbers_is_refused(fitted):
    folder, _ = fitted
    done = run(folder, "other.parquet")
    assert done.returncode != 0
    assert "training inputs X" in done.stderr and "Rebuild the model" in done.stderr, done.stderr
