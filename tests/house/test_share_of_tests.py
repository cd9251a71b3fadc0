"""The rest of the tests in shares, of which a check of a change runs one."""

import argparse

import pytest
from support.shares import ONE_BY_ONE, read_share, unit_of, units_of_share


def test_shares_together_are_all_tests():
    ids = [f"tests/{file}.py::{test}" for file in "bca" for test in "xyz"]
    ids += [f"{ONE_BY_ONE}::{name}" for name in ("one", "two", "three")]
    parts = [units_of_share(ids, k, 4) for k in (1, 2, 3, 4)]
    assert sorted(unit for part in parts for unit in part) == sorted({unit_of(i) for i in ids})
    assert {len(part) for part in parts} == {1, 2}  # six units
    assert read_share("2/4") == (2, 4)
    for wrong in ("0/4", "5/4", "2", "a/b"):
        with pytest.raises(argparse.ArgumentTypeError, match="is not K/N"):
            read_share(wrong)
