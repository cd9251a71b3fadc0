"""Pages of the site are short; theory and lists of names need not be."""

import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))
import run_pages  # noqa: E402

LONGEST = {"guide": 900, "others": 1200}
"""Words of a page."""
PAGES = [
    path
    for path in sorted(DOCS.rglob("*.md"))
    if not path.relative_to(DOCS)
    .parts[0]
    .startswith(("_", "theory", "generated", "notes", "api.md"))
]


def words(text: str) -> int:
    """Words of prose and tables: blocks of code and lists of pages are not counted."""
    text = re.sub(r"^( *)(```+).*?^\1\2$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return len([word for word in text.split() if re.search(r"\w", word)])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_page_has_few_words(page):
    guide = page.parent == DOCS and page.stem in run_pages.pages(run_pages.GUIDE)
    longest = LONGEST["guide" if guide else "others"]
    assert words(page.read_text()) <= longest, "split it by topic, or move measurements to a note"


def test_the_readme_is_short():
    assert len((DOCS.parent / "README.md").read_text().splitlines()) < 150


def test_words_are_counted():
    text = "# A title\n\n| a | 1.2 |\n|---|---|\n\n```python\nx = 1\n```\n\nSee [this](there.md)."
    assert words(text) == 2 + 2 + 2
