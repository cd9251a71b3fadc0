"""Every tutorial has a card with its title."""

import json
import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_every_notebook_has_a_card_with_its_title():
    page = (DOCS / "tutorials" / "index.md").read_text()
    cards = re.findall(r"\{grid-item-card\} (.*)\n:link: (\w+)$", page, re.M)
    titles = {
        path.stem: "".join(json.loads(path.read_text())["cells"][0]["source"]).splitlines()[0][2:]
        for path in (DOCS.parent / "notebooks").glob("*.ipynb")
    }
    assert sorted((name, title) for title, name in cards) == sorted(titles.items())
    assert sorted(titles) == sorted(re.findall(r"^\w+$", page.split("{toctree}")[1], re.M))
