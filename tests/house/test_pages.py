"""Pages of the site are short and begin with their question; theory and lists of names need not."""

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


def test_the_readme_is_short():
    assert len((DOCS.parent / "README.md").read_text().splitlines()) < 150


GUIDE = re.compile(r"^(?!(index|changelog|cite|scale|tutorials/index|extending/release)\.md)")
"""Pages that answer a question: no lists. `scale` says in its first line what it is for."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_page_begins_with_its_question(page):
    if GUIDE.match(page.relative_to(DOCS).as_posix()):
        text = page.read_text()
        assert "?" in text[: text.index("\n\n", text.index("\n\n") + 2)]


def test_words_are_counted():
    text = "# A title\n\n| a | 1.2 |\n|---|---|\n\n```python\nx = 1\n```\n\nSee [this](there.md)."
    assert words(text) == 2 + 2 + 2
