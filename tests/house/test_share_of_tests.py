"""The quick tier by its files, and the rest in shares, of which a check of a change runs one."""

import argparse
from pathlib import Path

import pytest
from support.shares import ONE_BY_ONE, read_share, unit_of, units_of_share
from support.tiers import QUICK_FILES, ROOT, is_left_out


def test_shares_together_are_all_tests():
    ids = [f"tests/{file}.py::{test}" for file in "bca" for test in "xyz"]
    ids += [f"{file}::{name}" for file in ONE_BY_ONE for name in ("one", "two", "three")]
    parts = [units_of_share(ids, k, 4) for k in (1, 2, 3, 4)]
    assert sorted(unit for part in parts for unit in part) == sorted({unit_of(i) for i in ids})
    assert sorted(map(len, parts)) == [3, 4, 4, 4]  # 3 files, 12 tests one by one
    assert read_share("2/4") == (2, 4)
    for wrong in ("0/4", "5/4", "2", "a/b"):
        with pytest.raises(argparse.ArgumentTypeError, match="is not K/N"):
            read_share(wrong)


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
