"""A share of the tests: `pytest -m full --share 2/4` runs the second of four.

Files go to the shares in turn, since tests of a file use the same compiled kernels; notebooks, and
laws that take minutes a test, do so one by one. All shares together run each test once.
"""

from __future__ import annotations

import argparse

import pytest

ONE_BY_ONE = (
    "tests/laws/test_calibration.py",
    "tests/laws/test_geweke_columns.py",
    "tests/laws/test_random_columns.py",
    "tests/test_notebooks.py",
)


def read_share(text: str) -> tuple[int, int]:
    """``K/N`` as numbers."""
    try:
        number, of = (int(part) for part in text.split("/"))
    except ValueError:
        number = of = 0
    if not 1 <= number <= of:
        raise argparse.ArgumentTypeError(f"{text!r} is not K/N with K from 1 to N, such as 2/4")
    return number, of


def unit_of(nodeid: str) -> str:
    """What is not divided: a file, or one test of `ONE_BY_ONE`."""
    return nodeid if nodeid.startswith(ONE_BY_ONE) else nodeid.split("::")[0]


def units_of_share(nodeids: list[str], number: int, of: int) -> set[str]:
    """Every N-th unit, in the order of their names."""
    return set(sorted({unit_of(nodeid) for nodeid in nodeids})[number - 1 :: of])


class Share:
    """Leaves the tests of other shares out, after pytest has left out those of other markers."""

    def __init__(self, number: int, of: int):
        self.share = number, of

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Keep those of the share."""
        units = units_of_share([item.nodeid for item in items], *self.share)
        others = [item for item in items if unit_of(item.nodeid) not in units]
        items[:] = [item for item in items if unit_of(item.nodeid) in units]
        config.hook.pytest_deselected(items=others)
