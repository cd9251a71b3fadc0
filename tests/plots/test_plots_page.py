"""The page of plots shows every plot there is; its code is run by `house/test_pages_run.py`."""

import re
from pathlib import Path

import pymc_trees as pmt

PAGE = Path(__file__).parents[2] / "docs" / "plots.md"


def test_every_plot_is_shown():
    shown = re.findall(r"^(?:\w+ = )?pmt\.(plot_\w+)\(", PAGE.read_text(), re.MULTILINE)
    assert {name for name in pmt.__all__ if name.startswith("plot_")} <= set(shown)
