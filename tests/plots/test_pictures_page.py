"""The page of pictures: its code runs, and it shows every picture there is."""

import re
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from support.few_draws import sample_few

import pymc_trees as pmt

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))
from draw_pictures import PAGE, blocks  # noqa: E402


# Eight draws do not converge.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_its_code_runs(monkeypatch):
    sample_few(monkeypatch, 8)
    names: dict = {}
    for code, picture in blocks():
        exec(compile(code, PAGE.name, "exec"), names)
        if picture:
            assert names["drawn"].backend == "matplotlib"
            assert (DOCS / picture).read_bytes().startswith(b"\x89PNG")
        plt.close("all")


def test_every_picture_is_named():
    named = set(re.findall(r"pmt\.(plot_\w+)", PAGE.read_text()))
    assert {name for name in pmt.__all__ if name.startswith("plot_")} == named
    shown = {picture for _, picture in blocks() if picture}
    kept = {path.relative_to(DOCS).as_posix() for path in (DOCS / "pictures").iterdir()}
    assert shown == kept
