"""Every tutorial has a card with its title, and begins with its question."""

import json
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_every_notebook_has_a_card_with_its_title():
    page = (DOCS / "tutorials" / "index.md").read_text()
    cards = re.findall(r"\{grid-item-card\} (.*)\n:link: (\w+)$", page, re.M)
    titles = {
        path.stem: json.loads(path.read_text())["cells"][0]["source"][0].strip("# \n")
        for path in (DOCS.parent / "notebooks").glob("*.ipynb")
    }
    assert sorted((name, title) for title, name in cards) == sorted(titles.items())
    assert sorted(titles) == sorted(re.findall(r"^\w+$", page.split("{toctree}")[1], re.M))


@pytest.mark.parametrize(
    "path", sorted((DOCS.parent / "notebooks").glob("*.ipynb")), ids=lambda p: p.stem
)
def test_a_tutorial_begins_with_its_question(path):
    first = "".join(json.loads(path.read_text())["cells"][0]["source"])
    title, opening = first.split("\n\n")[:2]
    assert "?" in title + opening
