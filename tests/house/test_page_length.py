"""No page of the site is longer than a reader wants; theory and the list of names may be."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
LONGEST = 1200
"""Words of a page."""
PAGES = [
    path
    for path in sorted(DOCS.rglob("*.md"))
    if not path.relative_to(DOCS).parts[0].startswith(("_", "theory", "generated", "api.md"))
]


def words(text: str) -> int:
    """Words of prose and tables: blocks of code and lists of pages are not counted."""
    text = re.sub(r"^( *)(```+).*?^\1\2$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return len([word for word in text.split() if re.search(r"\w", word)])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_page_has_few_words(page):
    assert words(page.read_text()) <= LONGEST, "split it by topic, or move measurements to a note"


def test_words_are_counted():
    text = "# A title\n\n| a | 1.2 |\n|---|---|\n\n```python\nx = 1\n```\n\nSee [this](there.md)."
    assert words(text) == 2 + 2 + 2
