"""Tables in the docs are those of the stored results."""

from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "benchmarks.md").read_text()
TABLES = {
    "uci": "benchmarks.tables.uci",
    "extrapolation": "benchmarks.extrapolation",
    "soft_bart": "benchmarks.soft_bart",
    "sharded": "benchmarks.sharded",
    "scoringbench": "benchmarks.tables.scoringbench_folds",
    "large_table": "benchmarks.large_table",
    "stream": "benchmarks.scale.stream",
}


@pytest.mark.parametrize("name", TABLES)
def test_the_docs_show_the_stored_results(name, monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT)
    module = pytest.importorskip(TABLES[name])
    results = pd.read_json(ROOT / "benchmarks" / "results" / f"{name}.jsonl", lines=True)
    module.report(results)
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    assert len(lines) > 4
    missing = [line for line in lines if line not in DOCS]
    assert missing == [], f"docs/benchmarks.md: python -m {TABLES[name]} --report prints these"
