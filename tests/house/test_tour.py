"""The pages that a new user reads first tell what runs; tutorials begin with their question."""

import json
import re
from pathlib import Path

import pytest
from support.few_draws import sample_few

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.full
@pytest.mark.usefixtures("quick_compile")
def test_the_tour_runs_from_top_to_bottom(monkeypatch, tmp_path):
    sample_few(monkeypatch, 3)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", (DOCS / "tour.md").read_text(), re.S | re.M)
    assert len(blocks) == 7
    names: dict = {}
    for block in blocks:
        exec(block, names)
    assert names["rentals"].sizes["draw"] == 3
    assert names["rentals"].shape[-1] == len(names["new"])
    assert (tmp_path / "bikes.nc").stat().st_size > 1000


def test_every_notebook_has_a_card():
    cards = re.findall(r"^:link: (\w+)$", (DOCS / "tutorials" / "index.md").read_text(), re.M)
    notebooks = (DOCS.parent / "notebooks").glob("*.ipynb")
    assert sorted(cards) == sorted(path.stem for path in notebooks)


@pytest.mark.parametrize(
    "path", sorted((DOCS.parent / "notebooks").glob("*.ipynb")), ids=lambda p: p.stem
)
def test_a_tutorial_begins_with_its_question(path):
    first = "".join(json.loads(path.read_text())["cells"][0]["source"])
    title, opening = first.split("\n\n")[:2]
    assert "?" in title + opening
