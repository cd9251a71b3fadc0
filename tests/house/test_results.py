"""Tables in the documentation are those of the stored results.

A note holds every line that a benchmark reports; a page quotes some of them, below a comment that
names the results: ``<!-- stored: uci -->``. `test_quoted_numbers` has numbers in sentences.
"""

import json
import re
from datetime import date

import pytest
from support.stored.results import PAGES, QUOTED, RESULTS, ROOT, TABLES, cells, name_of, reported

pytestmark = pytest.mark.usefixtures("benchmarks")


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
    assert {path.stem for path in RESULTS.glob("*.jsonl")} == set(TABLES)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
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


@pytest.mark.parametrize("name", TABLES)
def test_results_have_a_command_a_date_and_versions(name):
    text = (RESULTS / "README.md").read_text()
    rows = {cells(line)[0]: cells(line)[1:] for line in text.splitlines() if line[:3] == "| `"}
    command, measured, _ = rows[f"`{name}.jsonl`"]
    assert f"python -m {TABLES[name][0]}" in command.replace(" --", "` --").replace("``", "`")
    for day in measured.split(" to "):
        assert date(2026, 1, 1) < date.fromisoformat(day) <= date.today()
    assert re.search(r"Python \d+\.\d+\.\d+, PyMC \d+\.\d+\.\d+", text)
    assert len(rows) == len(TABLES)


def test_a_line_that_is_added_has_its_date_and_versions(tmp_path):
    lines = pytest.importorskip("benchmarks.tables.lines")
    lines.add_line({"rmse": 0.5}, tmp_path / "results.jsonl")
    found = json.loads((tmp_path / "results.jsonl").read_text())
    assert found["rmse"] == 0.5
    assert date.fromisoformat(found["date"])
    assert {"python", "version of pymc", "version of pymc_trees"} < found.keys()
