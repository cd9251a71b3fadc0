"""The main job, short: what it prints, what it leaves behind, what it does without matplotlib."""

from __future__ import annotations

import itertools
import re

import h5netcdf
import numpy as np
import pytest
import xarray as xr

import pymc_trees.__main__ as job

SHORT = ["--draws", "20", "--tune", "20", "--chains", "2", "--cores", "1"]


@pytest.fixture
def few_trees(monkeypatch):
    monkeypatch.setattr(job, "TREES", 20)
    monkeypatch.setitem(job.QUICK, "trees", 10)


@pytest.mark.full
def test_job_prints_a_table_and_leaves_a_picture_and_draws(few_trees, tmp_path, capsys):
    out = tmp_path / "made" / "here"
    assert job.main([*SHORT, "--seed", "3", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    for name in ("R-hat of mu", "ESS of mu", "R-hat of sigma", "ESS of sigma", "RMSE", "time"):
        assert re.search(rf"^.*{re.escape(name)}.* \d", printed, re.MULTILINE), name
    assert "90% intervals" in printed
    assert "equal those before saving" in printed
    assert (out / "bikes_effect_of_hour.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in out.iterdir()) == [
        "bikes_draws.nc",
        "bikes_effect_of_hour.png",
    ]
    with xr.open_datatree(out / "bikes_draws.nc", engine="h5netcdf") as stored:
        assert stored["posterior"].sizes["draw"] == 20
        assert np.isfinite(stored["posterior"]["mu"]).all()
    with h5netcdf.File(out / "bikes_draws.nc") as file:
        assert file["posterior"]["mu_forest"].compression == "gzip"


@pytest.mark.full
def test_quick_job_is_smaller_and_says_so(few_trees, tmp_path, capsys):
    assert job.main(["--quick", *SHORT, "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "mu ~ BART(10 trees)" in printed
    assert "Quick run: 10 trees and 2 chains of 20 draws" in printed
    assert "Without --quick: 20 trees and 4 chains of 750 draws" in printed
    assert "equal those before saving" in printed
    assert (tmp_path / "bikes_draws.nc").exists()


@pytest.mark.full
def test_without_matplotlib_the_job_says_so_and_goes_on(few_trees, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(job, "find_spec", lambda name: None)
    monkeypatch.setattr(job, "draw_picture", None)
    assert job.main([*SHORT, "--out", str(tmp_path)]) == 0
    assert "matplotlib is not installed" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["bikes_draws.nc"]


@pytest.mark.full
def test_a_prediction_that_changed_is_an_error(few_trees, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(job, "find_spec", lambda name: None)
    calls = itertools.count()
    predict = job.predict
    monkeypatch.setattr(job, "predict", lambda *given: predict(*given) + next(calls))
    assert job.main([*SHORT, "--out", str(tmp_path)]) == 1
    assert "differs" in capsys.readouterr().err


def test_held_out_rows_are_fixed_and_apart():
    bikes = job.load_bikes()
    train, test = job.split_rows(bikes)
    assert len(train) + len(test) == len(bikes)
    assert 0.18 < len(test) / len(bikes) < 0.22
    assert set(train.index).isdisjoint(test.index)
    assert job.split_rows(bikes)[1].equals(test)


def test_options_have_defaults():
    options = job.read_options([])
    assert (options.chains, options.out.name) == (4, "")
    assert options.cores >= 1


def test_quick_options_are_smaller_and_give_way_to_those_that_are_given():
    usual, quick = job.read_options([]), job.read_options(["--quick"])
    for name, number in job.QUICK.items():
        assert getattr(quick, name) == number < getattr(usual, name), name
    assert not usual.quick
    assert job.read_options(["--quick", "--draws", "7"]).draws == 7
