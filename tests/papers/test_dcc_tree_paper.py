"""What the tables of `benchmarks/papers/dcc_tree` rest on: rows, splits, functions."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # benchmarks are no part of the package

from benchmarks.papers.dcc_tree import __main__, data  # noqa: E402
from benchmarks.peers.data import MissingData  # noqa: E402


def test_wine_is_split_as_by_the_authors_program():
    found = data.load("Wine")
    assert found.X.shape == (142, 13) and found.X_test.shape == (36, 13) and found.classes == 3
    np.testing.assert_array_equal(found.X[:2, :3], [[13.03, 0.9, 1.71], [12.52, 2.43, 2.17]])
    np.testing.assert_array_equal(found.y[:5], [1, 1, 2, 1, 1])


def test_iris_has_the_papers_numbers_of_rows():
    found = data.load("Iris")
    assert len(found.y) == 105 and len(found.y_test) == 45
    np.testing.assert_array_equal(found.X[:2], [[6.3, 2.7, 4.9, 1.8], [4.8, 3.0, 1.4, 0.3]])


def test_cgm_is_its_tree_on_a_grid():
    found = data.load("CGM")
    assert found.X.shape == found.X_test.shape == (800, 2)
    assert set(found.X.ravel()) == set(range(1, 11))
    # leaves of the tree: x1 <= 4 and x0 <= 3, x0 <= 7, more; x1 > 4 and x0 <= 5, more
    leaves = [((1, 4), 1.0), ((5, 4), 5.0), ((8, 4), 8.0), ((5, 5), 8.0), ((6, 5), 2.0)]
    for x, mean in leaves:
        y = found.y[(found.X == x).all(axis=1)]
        assert abs(y.mean() - mean) < 5 * 0.2 / np.sqrt(len(y))
    assert found.floor == pytest.approx(0.2**2, rel=5 * np.sqrt(2 / 800))


def test_a_file_is_read_split_and_missing_cells_left_out(monkeypatch, tmp_path):
    rows = pd.DataFrame({"x": np.arange(20.0), "target": np.arange(20) % 2})
    rows.loc[3, "x"] = np.nan
    rows.to_csv(tmp_path / "raisin.csv.gz", index=False)
    monkeypatch.setenv("PYMC_TREES_DATA", str(tmp_path))
    found = data.load("Raisin")
    assert len(found.y) == 13 and len(found.y_test) == 6
    together = np.sort(np.concatenate([found.X, found.X_test])[:, 0])
    np.testing.assert_array_equal(together, np.delete(np.arange(20.0), 3))


def test_missing_files_are_said_to_be_missing_and_the_rest_runs(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PYMC_TREES_DATA", str(tmp_path))
    with pytest.raises(MissingData, match="raisin.csv.gz is not in the folder.*UCI"):
        data.load("Raisin")
    monkeypatch.delenv("PYMC_TREES_DATA")
    with pytest.raises(MissingData, match="breast_cancer.*set PYMC_TREES_DATA"):
        data.load("BCW")
    out = tmp_path / "out.jsonl"
    line = {"sampler": "cgm", "data": "WU", "seed": 0, "train": 0.1, "test": 0.2}
    line |= {"seconds_per_proposal": 0.001, **dict.fromkeys(__main__.SETTINGS)}
    out.write_text(json.dumps(line) + "\n")
    __main__.main(["--sets", "BCW", "--out", str(out)])
    said = capsys.readouterr().out
    assert "BCW is left out" in said and "| WU | cgm |  | 1 | 0.1000 (0) | 0.2000 (0) |" in said
    # what is there is not run again
    __main__.main(["--sets", "WU", "--samplers", "cgm", "--runs", "1", "--out", str(out)])
    assert len(out.read_text().splitlines()) == 1
