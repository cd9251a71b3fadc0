"""Tables in the docs are those of the stored results."""

from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
TABLES = {
    "uci": "benchmarks.tables.uci",
    "extrapolation": "benchmarks.extrapolation",
    "soft_bart": "benchmarks.soft_bart",
    "sharded": "benchmarks.sharded",
    "scoringbench": "benchmarks.tables.scoringbench_folds",
    "large_table": "benchmarks.large_table",
    "stream": "benchmarks.scale.stream",
    "two_modes": "benchmarks.mixing.two_modes",
}
PAGES = {"two_modes": "papers/wtw"}
"""Pages of tables that are not on `benchmarks`."""


@pytest.mark.parametrize("name", TABLES)
def test_the_docs_show_the_stored_results(name, monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT)
    module = pytest.importorskip(TABLES[name])
    results = pd.read_json(ROOT / "benchmarks" / "results" / f"{name}.jsonl", lines=True)
    module.report(results)
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    assert len(lines) > 4
    page = f"docs/{PAGES.get(name, 'benchmarks')}.md"
    text = (ROOT / page).read_text()
    missing = [line for line in lines if line not in text]
    assert missing == [], f"{page}: python -m {TABLES[name]} --report prints these"
