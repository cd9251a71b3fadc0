"""Files of draws that were damaged: an error, or the draws as they were written."""

import json
import logging
import subprocess
import sys

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from support.scale import scaled
from support.small_models import bart_model
from support.soft_models import regression
from support.tiers import tiers

import pymc_trees as pmt

LOG = logging.getLogger(__name__)
pytestmark = pytest.mark.usefixtures("quick_compile")

READER = """
import json, sys, warnings
import numpy as np, xarray as xr
warnings.simplefilter("ignore")
for line in sys.stdin:
    path = line.strip()
    try:
        with xr.open_datatree(path, engine="h5netcdf") as tree:
            array = tree["posterior"]["mu_forest"]
            np.save(path + ".npy", np.asarray(array.values))
            said = "read"
    except BaseException as error:
        said = type(error).__name__
    print(json.dumps([path, said]), flush=True)
"""


def draws_of(model, count=12):
    """Draws of the prior as if they were of the posterior."""
    with model:
        prior = pm.sample_prior_predictive(count, random_seed=1)
    return xr.DataTree.from_dict({"posterior": prior.prior.to_dataset()})


@pytest.fixture(scope="module", params=tiers(["forest", "soft tree"], quick=["forest"]))
def written(request, quick_compile, tmp_path_factory):
    """Model, its draws, the bytes of their file, and a folder."""
    model = bart_model(n=20, m=2, max_nodes=30) if request.param == "forest" else regression(20)[0]
    idata = draws_of(model)
    folder = tmp_path_factory.mktemp("files")
    idata.to_netcdf(folder / "good.nc", engine="h5netcdf")
    return model, idata, (folder / "good.nc").read_bytes(), folder


def read_all(paths):
    """What a reader says of each file. The library may crash over one: that is an error too."""
    said = {}
    while len(said) < len(paths):
        waiting = [str(path) for path in paths if str(path) not in said]
        done = subprocess.run(
            [sys.executable, "-c", READER],
            input="\n".join(waiting),
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        said |= dict(json.loads(line) for line in done.stdout.splitlines())
        if done.returncode != 0:
            left = [path for path in waiting if path not in said]
            said[left[0]] = f"exit {done.returncode}"
    return said


def assert_never_wrong(model, idata, paths):
    """Each file is an error, found by check_draws, or holds what was written; how many of each."""
    original = idata["posterior"]["mu_forest"].values
    counts = {"not read": 0, "found": 0, "as written": 0}
    for path, said in read_all(paths).items():
        if said != "read":
            counts["not read"] += 1
            continue
        values = np.load(path + ".npy", allow_pickle=False)
        if values.dtype == original.dtype and values.tobytes() == original.tobytes():
            counts["as written"] += 1
            continue
        dims = ("chain", "draw", "r", "f")[: values.ndim]
        read = xr.DataTree.from_dict({"posterior": xr.Dataset({"mu_forest": (dims, values)})})
        with pytest.raises(ValueError, match="mu_forest"):
            pmt.check_draws(read, model)
        counts["found"] += 1
    return counts


def test_files_cut_short(written, rng):
    model, idata, raw, folder = written
    paths = []
    for k, length in enumerate([0, 1, len(raw) - 1, *rng.integers(len(raw), size=scaled(20))]):
        paths.append(folder / f"short-{k}.nc")
        paths[-1].write_bytes(raw[:length])
    counts = assert_never_wrong(model, idata, paths)
    LOG.info("files cut short: %s", counts)
    assert counts["not read"] + counts["found"] >= 0.9 * len(paths)


@pytest.mark.full
def test_files_with_bytes_changed(written, rng):
    model, idata, raw, folder = written
    start = raw.index(idata["posterior"]["mu_forest"].values[0, 0].tobytes())
    size = idata["posterior"]["mu_forest"].values.nbytes
    paths = []
    for k in range(scaled(60)):
        changed = np.frombuffer(raw, dtype=np.uint8).copy()
        # in the draws themselves, or anywhere: most of the rest describes the file
        low, high = (start, start + size) if k % 2 else (0, len(raw))
        at = rng.integers(low, high, size=rng.integers(1, 17))
        changed[at] ^= rng.integers(1, 256, size=len(at)).astype(np.uint8)
        paths.append(folder / f"changed-{k}.nc")
        paths[-1].write_bytes(changed.tobytes())
    counts = assert_never_wrong(model, idata, paths)
    LOG.info("files with bytes changed: %s", counts)
    assert counts["found"] >= 0.4 * len(paths)


def reopened(idata, path):
    idata.to_netcdf(path, engine="h5netcdf")
    with xr.open_datatree(path, engine="h5netcdf") as tree:
        return tree.load()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.drop_vars("mu_forest"), "lacks mu_forest"),
        (lambda d: d.assign(mu_forest=d["mu_forest"].astype("float32")), "it is float32"),
        (lambda d: d.assign(mu_forest=d["mu_forest"].astype("float32").astype(float)), "float32"),
        (lambda d: d.isel(chain=0), "no dimension"),
        (lambda d: d.assign(mu_forest=d["mu_forest"] * 0.0), "altered"),
    ],
)
def test_files_that_hold_something_else(written, change, said, tmp_path):
    model, idata, _, _ = written
    data = change(idata["posterior"].to_dataset())
    read = reopened(xr.DataTree.from_dict({"posterior": data}), tmp_path / "other.nc")
    with pytest.raises(ValueError, match=f"mu_forest.*{said}|{said}"):
        pmt.check_draws(read, model)


def test_predictions_of_other_draws_are_nan(written, tmp_path):
    """For whoever does not call check_draws: the draws that are wrong, and no others."""
    model, idata, _, _ = written
    data = idata["posterior"].to_dataset().copy(deep=True)
    data["mu_forest"].values[0, 3, 1, 1] += 1e-9
    read = reopened(xr.DataTree.from_dict({"posterior": data}), tmp_path / "altered.nc")
    quiet = {"progressbar": False, "random_seed": 1, "predictions": True, "var_names": ["mu"]}
    with model:
        name = "X" if "X" in model else "mu_X"
        train = model[name].get_value()
        pm.set_data({name: train[:5] + 0.01})
        try:
            good = pm.sample_posterior_predictive(idata, **quiet).predictions["mu"].values
            mu = pm.sample_posterior_predictive(read, **quiet).predictions["mu"].values
        finally:
            pm.set_data({name: train})
    assert np.isnan(mu[0, 3]).all() and np.isfinite(good).all()
    np.testing.assert_array_equal(np.delete(mu, 3, axis=1), np.delete(good, 3, axis=1))
