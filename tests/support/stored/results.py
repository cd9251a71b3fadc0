"""The stored results, and what benchmarks print of them."""

import functools
import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "benchmarks" / "results"
# Results -> module that reports them, and its note.
TABLES = {
    "uci": ("benchmarks.tables.uci", "uci"),
    "extrapolation": ("benchmarks.extrapolation", "extrapolation"),
    "soft_bart": ("benchmarks.soft_bart", "soft_trees"),
    "sharded": ("benchmarks.sharded", "shards"),
    "scoringbench": ("benchmarks.tables.scoringbench_folds", "uci"),
    "large_table": ("benchmarks.large_table", "large_tables"),
    "stream": ("benchmarks.scale.stream", "streams"),
    "scale_peers": ("benchmarks.scale.peers", "scale_peers"),
    "threads": ("benchmarks.scale.threads", "threads"),
    "shares": ("benchmarks.scale.shares", "shares"),
    "two_modes": ("benchmarks.mixing.two_modes", "two_modes"),
    "class_smoothing": ("benchmarks.class_smoothing", "class_smoothing"),
    "honest": ("benchmarks.honest.bars", "honest"),
    "honest_defaults": ("benchmarks.honest.defaults", "defaults"),
    "density": ("benchmarks.density", "densities"),
    "dcc_tree": ("benchmarks.papers.dcc_tree", "paper_dcc_tree"),
}
PAGES = [
    ROOT / "README.md",
    *(p for p in sorted((ROOT / "docs").rglob("*.md")) if not {"_build", "notes"} & set(p.parts)),
]
QUOTED = re.compile(r"^<!-- stored: (\w+) -->\n((?:\|.*\n)+)", re.MULTILINE)
"""A table of a page below the comment that names its results."""


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@functools.cache
def stored(name: str) -> pd.DataFrame:
    return pd.read_json(RESULTS / f"{name}.jsonl", lines=True)


@functools.cache
def reported(name: str) -> list[str]:
    """Lines that a benchmark prints of its stored results."""
    module = pytest.importorskip(TABLES[name][0])
    printed = io.StringIO()
    with redirect_stdout(printed):
        module.report(stored(name).copy())
    return [line for line in printed.getvalue().splitlines() if line]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
