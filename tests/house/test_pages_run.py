"""The code of each page of the guide runs from top to bottom, and shows what the page says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))
import run_pages  # noqa: E402

CODE = [page for page in run_pages.pages() if "```python" in (DOCS / f"{page}.md").read_text()]


def test_pages_are_known():
    assert {"index", "quickstart", "survival", "dcc_tree", "plots"} <= set(CODE)
    assert len(CODE) > 15


@pytest.mark.full
@pytest.mark.parametrize("page", CODE)
def test_a_page_runs_and_shows_what_it_says(page):
    """In a process of its own, with short chains; numbers may differ from those of the page."""
    command = [sys.executable, DOCS / "run_pages.py", page, "--check", "--few"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-5000:]


def test_what_cannot_run_is_little():
    """Clusters, and what is installed by hand."""
    skipped = {
        page: re.findall(r"<!-- not run: (.*?) -->", (DOCS / f"{page}.md").read_text())
        for page in CODE
    }
    assert sum(map(len, skipped.values())) <= 8, skipped


def page(tmp_path, monkeypatch, text: str) -> Path:
    monkeypatch.setattr(run_pages, "DOCS", tmp_path)
    monkeypatch.setattr(run_pages, "sample_quietly", lambda few: None)
    (tmp_path / "pictures").mkdir()
    path = tmp_path / "page.md"
    path.write_text(text)
    return path


SHOWN = "```python\nx = 2.5\nprint('x is', x)\n[x, x]\n```\n\n```text\nx is 2.5\n[2.5, 2.5]\n```\n"


def test_what_a_block_shows_is_written_below_it(tmp_path, monkeypatch):
    bare = SHOWN[: SHOWN.index("\n```text")]
    path = page(tmp_path, monkeypatch, f"# A page\n\n{bare}\nWords.\n\n```python\nx + 1;\n```\n")
    run_pages.run_page("page", write=True, few=False)
    assert path.read_text().startswith(f"# A page\n\n{SHOWN}\nWords.\n")
    assert path.read_text().endswith("```python\nx + 1;\n```\n\n```text\n3.5\n```\n")
    run_pages.run_page("page", write=False, few=False)


@pytest.mark.parametrize(
    ("said", "put", "fails"),
    [
        ("x is 2.5\n[2.5, 2.5]", "x is 12.5\n[-1e-3,  4]", False),  # numbers and space
        ("x is 2.5\n[", "x was 2.5\n[", True),
        ("[2.5, 2.5]\n", "[2.5]\n", True),
        ("x = 2.5", "x = y", True),
    ],
)
def test_other_words_are_a_fault(tmp_path, monkeypatch, said, put, fails):
    assert said in SHOWN
    page(tmp_path, monkeypatch, SHOWN.replace(said, put))
    if not fails:
        return run_pages.run_page("page", write=False, few=False)
    with pytest.raises(SystemExit, match=r"docs/page.md, line 1"):
        run_pages.run_page("page", write=False, few=False)


def test_pictures_are_saved_under_their_names(tmp_path, monkeypatch):
    code = "```python\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\n```\n"
    path = page(tmp_path, monkeypatch, code + "\n![A line](pictures/line.png)\n")
    run_pages.run_page("page", write=True, few=False)
    assert "```text" not in path.read_text()
    assert {one.name for one in (tmp_path / "pictures").iterdir()} == {"line.png", "line_dark.png"}
    path.write_text(code)
    with pytest.raises(ValueError, match="makes 1 figures, and 0 pictures are named"):
        run_pages.run_page("page", write=True, few=False)
