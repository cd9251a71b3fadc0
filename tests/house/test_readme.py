"""The README tells the truth: its blocks run from top to bottom, its speeds are those measured."""

import re
from pathlib import Path

import pytest
from support.few_draws import sample_few

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


# PyTensor divides 0 by 0 where new inputs have as many rows as the old, and some cell is 0 in both.
@pytest.mark.full
@pytest.mark.filterwarnings("ignore:invalid value encountered in divide:RuntimeWarning")
@pytest.mark.versions
def test_blocks_run_from_top_to_bottom(monkeypatch):
    sample_few(monkeypatch, 3)  # an estimator looks at R-hat from four on
    blocks = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    names: dict = {}
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 3
    rows = len(names["X_new"])
    assert names["pred"].predictions["mu"].shape == (2, 3, rows)
    assert names["pred"].predictions["y"].shape == (2, 3, rows)
    assert names["quantiles"].shape == (rows, 2)
    assert names["mean"].shape == names["sd"].shape == (rows,)
    assert names["forest"].n_samples_seen_ == rows + len(names["X_train"])


def test_speeds_are_those_of_the_table():
    table = (ROOT / "benchmarks/notes/sweep_speed.md").read_text()
    found = re.findall(r"^\| (1000|10000) \| (\S+) \| ([\d.]+) \|", table, re.MULTILINE)
    ms = {(rows, package): number for rows, package, number in found}
    said = " ".join(README.split())
    for rows, name in (("1000", "1,000"), ("10000", "10,000")):
        ours, dbarts, stochtree = (
            ms[rows, package] for package in ("pymc_trees:CGM", "dbarts", "stochtree")
        )
        words = f"{ours} ms at {name} rows (dbarts {dbarts}, stochtree {stochtree})"
        assert words in said, words
