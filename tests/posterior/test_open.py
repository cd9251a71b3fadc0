"""`open` reads what `save` wrote: as a whole where it fits, and damage is an error."""

import numpy as np
import pytest
import xarray as xr
from support.fitted import on_a_frame, two_functions

import pymc_trees as pmt


@pytest.fixture(scope="module")
def fitted():
    return on_a_frame()


@pytest.fixture
def path(fitted, tmp_path):
    return pmt.save(fitted[1], tmp_path / "fit.nc")


def in_memory(tree):
    return all(v.variable._in_memory for node in tree.subtree for v in node.data_vars.values())


def test_it_is_read_as_a_whole_where_it_fits(fitted, path):
    model, idata = fitted
    whole = pmt.open(path, model)
    assert whole.identical(idata) and in_memory(whole)
    with pmt.open(path, max_bytes=idata.nbytes - 1) as lazy:
        assert not in_memory(lazy) and lazy.identical(idata)
    path.unlink()  # nothing of it is needed any more
    assert np.isfinite(pmt.predictions(whole, model)["prediction"]).all()


def test_draws_of_another_model_are_refused(path):
    other, _ = two_functions()
    with pytest.raises(ValueError, match="idata lacks"):
        pmt.open(path, other)


def test_damage_is_an_error(path, tmp_path):
    content, rng = path.read_bytes(), np.random.default_rng(1)
    for length in rng.integers(len(content), size=20):
        damaged = tmp_path / "damaged.nc"
        damaged.write_bytes(content[:length])
        with pytest.raises(ValueError, match="holds no draws that can be read"):
            pmt.open(damaged)
    with pytest.raises(FileNotFoundError):
        pmt.open(tmp_path / "nothing.nc")
    assert xr.open_datatree(path, engine="h5netcdf").load().identical(pmt.open(path))
