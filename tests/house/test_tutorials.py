"""Every tutorial has a card, and begins with its question."""

import json
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


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
