"""Tables of float32, of integers and on disk are kept in a file, read by rows; no draw moves.

What counts as large, blocks of rows and groups of columns are made small, so that there are many.
"""

import copy
import errno
import pickle
import tracemalloc

import cloudpickle
import h5py
import numpy as np
import polars as pl
import pymc as pm
import pymc.backends.arviz
import pytest
from support.small_models import assert_same_draws, bart_model, sample, step_data

import pymc_trees as pmt
from pymc_trees.core.columns import table_file
from pymc_trees.core.columns.cells import MISSING
from pymc_trees.core.columns.design import make_design
from pymc_trees.core.columns.table_file import each_column, in_file, row_blocks, write_table
from pymc_trees.distributions.data import table as large
from pymc_trees.distributions.forest_inputs import declared, fingerprint_of, forest_inputs
from pymc_trees.targets.graph import ForestUseError, check_inputs

LEAF = pmt.NormalLeaf(0.0, 1.0)
N, P = 50, 3


@pytest.fixture
def small(monkeypatch):
    """Everything is large; a block has seven rows or so, a group two columns."""
    monkeypatch.setattr(large, "LARGE", 0)
    monkeypatch.setattr(large, "BLOCK_BYTES", 8 * 7 * P)
    monkeypatch.setattr(table_file, "BLOCK_BYTES", 8 * 5 * P)
    monkeypatch.setattr(table_file, "COLUMN_BYTES", 8 * 2 * N)


def numbers(dtype=np.float32, missing=False):
    values = (100 * np.random.default_rng(0).random((N, P))).astype(dtype)
    if missing:
        values[[1, 20, 49], [0, 2, 1]] = np.nan
    return values


def on_disk(values, path, order="C", dtype=None):
    """Map of a file that has the values, opened for reading only."""
    written = np.memmap(path, dtype or values.dtype, "w+", shape=values.shape, order=order)
    written[:] = values
    written.flush()
    return np.memmap(path, dtype or values.dtype, "r", shape=values.shape, order=order)


def dataset(values, path):
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=values, chunks=(9, 2), compression="gzip")
    return h5py.File(path, "r")["X"]


SOURCES = {
    "float32": lambda path: numbers(),
    "float32 with missing cells": lambda path: numbers(missing=True),
    "float16": lambda path: numbers(np.float16),
    "integers": lambda path: numbers(np.int16),
    "bools": lambda path: numbers() > 50,
    "columns side by side": lambda path: np.asfortranarray(numbers()),
    "every other row, backwards": lambda path: np.repeat(numbers(), 2, axis=0)[::-2, ::-1],
    "mapped float64": lambda path: on_disk(numbers(np.float64), path),
    "mapped float64 with missing cells": lambda path: on_disk(numbers(float, True), path),
    "mapped float32": lambda path: on_disk(numbers(missing=True), path),
    "mapped integers": lambda path: on_disk(numbers(np.int32), path),
    "mapped, columns side by side": lambda path: on_disk(numbers(), path, "F"),
    "mapped, bytes in the other order": lambda path: on_disk(numbers(), path, dtype=">f4"),
    "part of a map": lambda path: on_disk(numbers(), path)[5:, :2],
    "an array over a map": lambda path: np.asarray(on_disk(numbers(float), path)),
    "HDF5": lambda path: dataset(numbers(missing=True), path),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("n_cuts", [None, 7])
def test_every_table_is_the_one_of_float64(small, tmp_path, source, n_cuts):
    X = SOURCES[source](tmp_path / "table")
    before = (tmp_path / "table").read_bytes() if (tmp_path / "table").exists() else b""
    cells = np.asarray(X[:], dtype=np.float64)
    settings = {"m": 3, "leaf": LEAF, "n_cuts": n_cuts}
    with pm.Model() as model:
        pmt.BART("mu", X, **settings)
    with pm.Model() as plain:
        pmt.BART("mu", np.array(cells), **settings)
    held, known = model["mu_X"].get_value(borrow=True), declared(model["mu_forest"])
    assert in_file(held) and known.X is held and model["mu_X"].get_value() is held
    np.testing.assert_array_equal(held, np.where(np.isnan(cells), MISSING, cells))
    assert not in_file(plain["mu_X"].get_value(borrow=True))
    assert fingerprint_of(model["mu_forest"]) == fingerprint_of(plain["mu_forest"])
    if before:
        assert (tmp_path / "table").read_bytes() == before


def test_small_tables_and_float64_stay_in_memory(monkeypatch, tmp_path):
    values = numbers()
    for LARGE, X in ((8 * N * P, values), (0, values.astype(float)), (0, values.tolist())):
        monkeypatch.setattr(large, "LARGE", LARGE)
        with pm.Model():
            assert not in_file(pmt.Data("X", X).get_value(borrow=True))
    monkeypatch.setattr(large, "LARGE", 8 * N * P - 1)
    with pm.Model():
        assert in_file(pmt.Data("X", values).get_value(borrow=True))


@pytest.mark.parametrize("settings", [{"n_cuts": 7}, {}])
def test_draws_are_those_of_the_table_in_memory(small, quick_compile, settings):
    X, y = step_data()
    X = X.astype(np.float32)

    def drawn(X):
        with pm.Model() as model:
            mu = pmt.BART("mu", X, y, m=5, max_nodes=295, **settings)
            pm.Normal("y", mu, 0.5, observed=y, shape=mu.shape)
            return model, sample()

    model, found = drawn(X)
    plain, expected = drawn(X.astype(float))
    assert in_file(model["mu_X"].get_value(borrow=True))
    assert "constant_data" not in found.children and set(expected.constant_data) == {"mu_X"}
    del expected["constant_data"]
    assert_same_draws(found, expected)
    pmt.check_draws(found, plain)
    np.testing.assert_array_equal(
        pm.draw(model["mu"], 3, random_seed=1), pm.draw(plain["mu"], 3, random_seed=1)
    )
    seen = [
        pm.sample_posterior_predictive(idata, one, random_seed=1, progressbar=False)
        for idata, one in ((found, model), (expected, plain))
    ]
    np.testing.assert_array_equal(*(one.posterior_predictive["y"] for one in seen))
    new = X[::-1]
    there = pmt.predictions(found, model, new, progressbar=False)
    np.testing.assert_array_equal(
        there["prediction"],
        pmt.predictions(found, plain, new.astype(float), progressbar=False)["prediction"],
    )
    for how in (pmt.set_data, pm.set_data):
        with model:
            how({"mu_X": new})
        held = model["mu_X"].get_value(borrow=True)
        assert in_file(held)
        np.testing.assert_array_equal(held, new)
    with model, pytest.raises(ForestUseError):
        sample(1, 0)


def test_levels_of_a_large_table(small):
    X = numbers(np.float32) // 25
    with pm.Model() as model:
        held = pmt.Data("X", X, split_rules=["subset", "continuous", "continuous"]).get_value()
    np.testing.assert_array_equal(held, X)
    with model:
        pmt.set_data({"X": X[:5]})
    np.testing.assert_array_equal(model["X"].get_value(), X[:5])


def test_a_parquet_file_by_a_lazy_frame(small, tmp_path):
    frame = pl.DataFrame({"a": numbers(missing=True)[:, 0], "b": range(N), "c": [None] + [1] * 49})
    frame.write_parquet(tmp_path / "table.parquet")
    lazy = pl.scan_parquet(tmp_path / "table.parquet")
    with pm.Model() as plain:
        pmt.BART("mu", frame, leaf=LEAF, m=2)
    with pm.Model() as model:
        pmt.BART("mu", lazy, leaf=LEAF, m=2, split_prior={"b": 2.0})
    held = model["mu_X"].get_value(borrow=True)
    assert in_file(held) and model.coords["mu_X_column"] == ("a", "b", "c")
    np.testing.assert_array_equal(held, plain["mu_X"].get_value())
    with model:
        pmt.set_data({"mu_X": lazy.select("c", "b", "a").head(7)})
    np.testing.assert_array_equal(model["mu_X"].get_value(), held[:7])


def test_plain_model_data(small):
    X = numbers()
    with pm.Model() as model:
        pmt.BART("floats", pm.Data("X", X), leaf=LEAF, m=2)
        pmt.BART("whole", pm.Data("Z", X.astype(int)), leaf=LEAF, m=2)
    known = declared(model["floats_forest"]).X
    assert not in_file(known) and known is model["X"].get_value(borrow=True)
    known = declared(model["whole_forest"]).X
    assert in_file(known) and model["Z"].dtype.startswith("int")
    np.testing.assert_array_equal(known, X.astype(int))


def test_copies_and_pickles_of_a_table(small):
    with pm.Model() as model:
        pmt.BART("mu", numbers(missing=True), leaf=LEAF, m=2, n_cuts=3)
    table = model["mu_X"].get_value(borrow=True)
    assert copy.deepcopy(table) is table
    for part in (table[:3], table + 1, table.copy(), table.T, copy.deepcopy(table.T)):
        assert not in_file(part)
        assert not in_file(pickle.loads(pickle.dumps(part)))
    assert type(table[:3]) is np.ndarray and isinstance(table.min(), float)
    again = pickle.loads(cloudpickle.dumps(model))
    constant, known = (forest_inputs(one["mu_forest"]).X for one in (again, model))
    assert constant.signature() == known.signature() == copy.deepcopy(known).signature()
    assert copy.copy(known).signature() == known.signature()
    there = again["mu_X"].get_value(borrow=True)
    assert in_file(there) and there is not table and declared(again["mu_forest"]).X is there
    np.testing.assert_array_equal(there, table)


def test_rows_and_columns_of_a_table(small):
    values = np.random.default_rng(0).random((N, P))
    for X in (values, write_table(P, [values[:20], values[20:].tobytes()])):
        assert len(list(each_column(X))) == P
        np.testing.assert_array_equal(np.array(list(each_column(X))).T, values)
        parts = list(row_blocks(X))
        assert len(parts) == N / 5 and {type(part) for _, part in parts} == {np.ndarray}
        np.testing.assert_array_equal(np.concatenate([part for _, part in parts]), values)
        for rows, part in parts:
            np.testing.assert_array_equal(part, values[rows])


def test_errors_name_the_table(small, monkeypatch):
    wrong = numbers()
    wrong[30, 1] = -np.inf
    with pm.Model(), pytest.raises(ValueError, match=r"X holds infinite values in columns \[1\]"):
        pmt.BART("mu", wrong, leaf=LEAF)

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(table_file.tempfile, "TemporaryFile", full)
    with pm.Model(), pytest.raises(OSError, match=r"X could not be kept.*No space left.*TMPDIR"):
        pmt.BART("mu", numbers(), leaf=LEAF)


def test_no_table_of_float64_in_memory(small, monkeypatch, tmp_path):
    monkeypatch.setattr(large, "BLOCK_BYTES", 2**17)
    monkeypatch.setattr(table_file, "BLOCK_BYTES", 2**17)
    monkeypatch.setattr(table_file, "COLUMN_BYTES", 2**19)
    values = np.random.default_rng(0).random((10_000, 50))
    n_bytes, most = values.nbytes, []
    for X in (values, on_disk(values, tmp_path / "table", dtype=np.float32)):
        tracemalloc.start()
        with pm.Model() as model:
            pmt.BART("mu", X, m=2, leaf=LEAF, n_cuts=20)
        known = declared(model["mu_forest"])
        declaring = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        held = tracemalloc.get_traced_memory()[0]
        make_design(known.X, known.cuts)
        check_inputs(model["mu_forest"], [model["mu_X"]])
        pymc.backends.arviz.find_constants(model)
        later = tracemalloc.get_traced_memory()[1] - held
        tracemalloc.stop()
        most.append((declaring, later))
    assert min(most[0]) > n_bytes
    assert most[1][0] < n_bytes / 2 and most[1][1] < n_bytes / 4  # codes are an eighth


@pytest.mark.full
@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_chains_in_other_processes(small, quick_compile, how):
    X, y = step_data()
    with pm.Model():
        mu = pmt.BART("mu", X.astype(np.float32), y, m=5, max_nodes=295)
        pm.Normal("y", mu, 0.5, observed=y, shape=mu.shape)
        assert_same_draws(sample(cores=2, mp_ctx=how), sample())


@pytest.mark.full
def test_room_says_nothing_to_draws(quick_compile):
    """Labels of 16 bits and of 32 lead to the same trees."""
    X, y = step_data()

    def drawn(max_nodes):
        with bart_model(max_nodes=max_nodes) as model:
            assert model["mu_forest"].owner.op.layout.max_nodes == max_nodes
            return sample(step=pmt.CGM()).posterior["mu"].values

    np.testing.assert_array_equal(drawn(65_536), drawn(65_537))
