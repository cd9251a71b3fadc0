"""The quick tier by its files, and the rest in shares, of which a check of a change runs one."""

import argparse
from pathlib import Path

import pytest
from support.shares import (
    ONE_BY_ONE,
    durations_in,
    measured_seconds,
    read_share,
    unit_of,
    units_of_share,
)
from support.tiers import QUICK_FILES, ROOT, is_left_out


def test_shares_together_are_all_tests():
    ids = [f"tests/{file}.py::{test}" for file in "bca" for test in "xyz"]
    ids += [f"{file}::{name}" for file in ONE_BY_ONE for name in ("one", "two", "three")]
    units = sorted({unit_of(i) for i in ids})
    seconds = dict.fromkeys(units, 10.0) | {"tests/b.py": 25.0}
    parts = [units_of_share(ids, k, 4, seconds) for k in (1, 2, 3, 4)]
    assert sorted(unit for part in parts for unit in part) == units
    times = [sum(seconds[unit] for unit in part) for part in parts]
    assert max(times) - min(times) <= 10.0
    assert read_share("2/4") == (2, 4)
    for wrong in ("0/4", "5/4", "2", "a/b"):
        with pytest.raises(argparse.ArgumentTypeError, match="is not K/N"):
            read_share(wrong)


def test_seconds_are_read_from_what_pytest_prints():
    printed = """
= slowest durations =
12.50s call     tests/a.py::test_one[x y]
0.50s setup    tests/a.py::test_two
3.00s call     tests/test_notebooks.py::test_notebook_runs[01]
"""
    notebook = "tests/test_notebooks.py::test_notebook_runs[01]"
    assert durations_in(printed) == {"tests/a.py": 13.0, notebook: 3.0}


def test_units_with_seconds_exist():
    files = {unit.split("::")[0] for unit in measured_seconds()}
    assert [file for file in files if not (ROOT / file).is_file()] == []


def test_files_of_the_quick_tier_exist():
    assert [path for path in QUICK_FILES if not path.is_file()] == []


class Asked:
    """Settings of pytest, as far as tiers read them."""

    def __init__(self, markers: str, *args: str):
        self.option, self.args = self, args
        self.markexpr = markers


@pytest.mark.parametrize(
    ("asked", "path", "left_out"),
    [
        (Asked("not full", "pymc_trees", "tests"), "tests/laws/test_tempering.py", True),
        (Asked("not full", "pymc_trees", "tests"), "tests/laws/test_prior.py", False),
        (Asked("not full", "pymc_trees", "tests"), "tests/support/storm.py", True),
        (Asked("not full", "pymc_trees", "tests"), "tests/house/conftest.py", False),
        (Asked("not full", str(ROOT / "tests")), "pymc_trees/datasets.py", True),
        (Asked("not full", "tests/laws"), "tests/laws/test_tempering.py", False),
        (Asked("full", "pymc_trees", "tests"), "tests/laws/test_tempering.py", False),
        (Asked("versions", "tests"), "tests/test_main.py", False),
    ],
)
def test_files_outside_the_quick_tier_are_not_read(asked, path, left_out):
    assert is_left_out(Path(ROOT, path), asked) is left_out
