"""A share of the tests: `pytest -m full --share 2/20` runs the second of twenty.

Shares are about as long as each other, by the seconds in `seconds.csv`, which were measured once;
what is not in it counts by its tests. A file goes to one share, since its tests use the same
compiled kernels; pages, notebooks, and laws that take minutes a test, do so one by one. All
shares together run each test once. After large changes, measure anew:

    pytest -n 2 -m full --durations=0 > log; python -m tests.support.shares log
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

ONE_BY_ONE = (
    "tests/house/test_pages_run.py",
    "tests/laws/test_calibration.py",
    "tests/laws/test_geweke_columns.py",
    "tests/laws/test_random_columns.py",
    "tests/test_notebooks.py",
)
MEASURED = Path(__file__).with_name("seconds.csv")
UNKNOWN = 1.0
"""Seconds of a test of what is not in it."""
SHORT = 3.0
"""Seconds from which they are stored."""
DURATION = re.compile(r"^\s*([\d.]+)s (?:setup|call|teardown)\s+(\S+::.+?)\s*$", re.MULTILINE)


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


def measured_seconds() -> dict[str, float]:
    """Seconds of units, as stored."""
    with MEASURED.open(newline="") as file:
        return {unit: float(seconds) for unit, seconds in csv.reader(file)}


def units_of_share(
    nodeids: Iterable[str], number: int, of: int, seconds: dict[str, float]
) -> set[str]:
    """Units of a share: the longest first, each to the share that has least so far."""
    tests = Counter(map(unit_of, nodeids))
    known = {unit: seconds.get(unit, UNKNOWN * n) for unit, n in tests.items()}
    shares: list[tuple[float, set[str]]] = [(0.0, set()) for _ in range(of)]
    for unit in sorted(known, key=lambda unit: (-known[unit], unit)):
        k = min(range(of), key=lambda k: shares[k][0])
        shares[k] = shares[k][0] + known[unit], shares[k][1] | {unit}
    return shares[number - 1][1]


class Share:
    """Leaves the tests of other shares out, after pytest has left out those of other markers."""

    def __init__(self, number: int, of: int):
        self.share = number, of

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Keep those of the share."""
        ids = [item.nodeid for item in items]
        units = units_of_share(ids, *self.share, measured_seconds())
        others = [item for item in items if unit_of(item.nodeid) not in units]
        items[:] = [item for item in items if unit_of(item.nodeid) in units]
        config.hook.pytest_deselected(items=others)


def durations_in(output: str) -> dict[str, float]:
    """Seconds of units in what pytest prints with ``--durations=0``."""
    found: dict[str, float] = {}
    for seconds, nodeid in DURATION.findall(output):
        unit = unit_of(nodeid)
        found[unit] = found.get(unit, 0.0) + float(seconds)
    return found


def main() -> None:
    """Put the durations of logs in the place of those that are stored."""
    stored = measured_seconds()
    for log in sys.argv[1:]:
        stored |= durations_in(Path(log).read_text())
    with MEASURED.open("w", newline="") as file:
        rows = [(unit, round(s)) for unit, s in sorted(stored.items()) if s >= SHORT]
        csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
