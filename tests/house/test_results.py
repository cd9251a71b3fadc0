"""Tables in the documentation are those of the stored results.

A note holds every line that a benchmark reports; a page quotes some of them, below a comment that
names the results: ``<!-- stored: uci -->``.
"""

import functools
import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
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
}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
QUOTED = re.compile(r"^<!-- stored: (\w+) -->\n((?:\|.*\n)+)", re.MULTILINE)


@functools.cache
def reported(name: str) -> list[str]:
    """Lines that a benchmark prints of its stored results."""
    module = pytest.importorskip(TABLES[name][0])
    printed = io.StringIO()
    with redirect_stdout(printed):
        module.report(stored(name))
    return [line for line in printed.getvalue().splitlines() if line]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def of_columns(header: list[str], lines: list[str]) -> list[list[str]]:
    """Rows, as far as some columns go, of those tables that have all of these."""
    found, at = [], None
    for line, below in zip(lines, [*lines[1:], ""]):
        if below.startswith("|---"):
            names = cells(line)
            at = [names.index(n) for n in header] if set(header) <= set(names) else None
        elif at is not None and line.startswith("|") and not line.startswith("|---"):
            found.append([cells(line)[k] for k in at])
    return found


def stored(name: str) -> pd.DataFrame:
    return pd.read_json(ROOT / "benchmarks" / "results" / f"{name}.jsonl", lines=True)


@pytest.fixture(autouse=True)
def benchmarks_are_found(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    pytest.importorskip("benchmarks")  # not in the archive of sources


@pytest.mark.parametrize("name", TABLES)
def test_a_note_shows_the_stored_results(name):
    module, note = TABLES[name]
    pytest.importorskip(module)
    lines = reported(name)
    assert len(lines) > 4
    text = (ROOT / "benchmarks" / "notes" / f"{note}.md").read_text()
    missing = [line for line in lines if line not in text]
    assert missing == [], f"benchmarks/notes/{note}.md: python -m {module} --report prints these"


def test_every_file_of_results_is_reported():
    assert {path.stem for path in (ROOT / "benchmarks" / "results").iterdir()} == set(TABLES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_quotes_stored_results(page):
    text = page.read_text()
    found = QUOTED.findall(text)
    assert len(found) == text.count("<!-- stored"), "a table follows the comment"
    for name, table in found:
        header, _, *rows = map(cells, table.splitlines())
        known = of_columns(header, reported(name))
        wrong = [row for row in rows if row not in known]
        assert rows and wrong == [], f"python -m {TABLES[name][0]} --report prints other numbers"


def test_other_numbers_are_seen():
    lines = [
        "| a | b | c |",
        "|---|---|---|",
        "| 1 | 2 | 3 |",
        "| d | c |",
        "|---|---|",
        "| 5 | 6 |",
    ]
    assert of_columns(["a", "c"], lines) == [["1", "3"]]
    assert of_columns(["c"], lines) == [["3"], ["6"]]


def test_pages_quote_some_results():
    quoted = {name for page in PAGES for name, _ in QUOTED.findall(page.read_text())}
    assert {"uci", "soft_bart", "extrapolation", "large_table"} <= quoted


def test_every_note_is_in_the_index():
    notes = ROOT / "benchmarks" / "notes"
    named = re.findall(r"\((\w+\.md)\)", (notes / "README.md").read_text())
    assert sorted(named) == sorted(p.name for p in notes.glob("*.md") if p.name != "README.md")


def comparison() -> dict[str, str]:
    """Rows of docs/comparison.md, by their first cell."""
    text = (ROOT / "docs" / "comparison.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \| (.*) \|$", text, re.MULTILINE)
    return {first: rest.replace("*", "") for first, rest in rows}


def of_uci() -> list[str]:
    """Ranks, coverage and errors that the comparison quotes."""
    ranks, cover, worst = (
        [cell.strip() for cell in line.strip("|").split("|")[1:]] for line in reported("uci")[-3:]
    )
    ours, _, ngboost, boosting, stochtree, pymc_bart = (f"{float(rank):.1f}" for rank in ranks)
    return [
        f"mean rank {ours}; 90% intervals cover {cover[0]} on average, {worst[0]} at worst",
        f"stochtree {stochtree} ",
        f"NGBoost {ngboost}, pymc-bart {pymc_bart}, boosted quantiles {boosting}",
    ]


def rmse_of_uci() -> list[str]:
    results = stored("uci")
    mean = results.groupby(["set", "method"]).rmse.mean()
    ours, sigma = "pymc_trees", "pymc_trees, one sigma"
    return [
        f"{mean['concrete', ours]:.2f} on concrete, {mean['wine_quality_red', ours]:.3f} on wine, "
        f"{mean['energy', ours]:.3f} on energy",
        f"boosting {mean['wine_quality_red', 'gradient boosting']:.3f} on wine",
        f"one sigma {mean['concrete', sigma]:.2f} and {mean['energy', sigma]:.3f} on the others",
    ]


def of_extrapolation() -> list[str]:
    mean = stored("extrapolation").groupby("method").outside.mean()
    ours = [f"{mean[f'pymc_trees, {leaf}']:.3f}" for leaf in ("parent", "path", "all", "constant")]
    return [
        f"{', '.join(ours[:3])} (`LinearLeaf`: parent, path, all); {ours[3]} with constant leaves",
        f"stochtree {mean['stochtree, all']:.3f} with a regression in each leaf, "
        f"{mean['stochtree, constant']:.3f} constant",
    ]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("Regression with uncertainty, five UCI sets, NLL of held-out rows", of_uci),
        ("The same, RMSE", rmse_of_uci),
        ("A trend with a step, RMSE of f beyond the training rows", of_extrapolation),
    ],
)
def test_the_comparison_quotes_stored_results(row, said):
    found = comparison()[row]
    for words in said():
        assert words in found
