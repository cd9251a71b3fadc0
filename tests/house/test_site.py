"""What the site adds: links to notes, dark pictures, breaks, arguments, formulas offline."""

import logging
import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
sys.path.append(str(DOCS / "_extensions"))
breaks = pytest.importorskip("breaks")
copies = pytest.importorskip("copies")
docstrings = pytest.importorskip("docstrings")
offline = pytest.importorskip("offline")
NOTES = {path.stem for path in copies.NOTES.glob("*.md")}


@pytest.mark.parametrize(
    ("page", "address"),
    [("benchmarks", "notes/peers.md"), ("papers/pg_bart", "../notes/peers.md")],
)
def test_a_link_to_a_note_leads_to_its_page(page, address):
    up = "../" * (page.count("/") + 1)
    source = [f"({{download}}`note <{up}benchmarks/notes/peers.md>`: all packages)"]
    copies.link_notes(None, page, source)
    assert source == [f"([note]({address}): all packages)"]


def test_all_links_to_notes_are_found():
    pages = [path for path in DOCS.rglob("*.md") if "_build" not in path.parts]
    text = "".join(path.read_text() for path in pages if path.parent.name != "notes")
    named = copies.TO_NOTE.findall(text)
    assert len(named) == text.count("{download}") > 0
    assert {note for _, note in named} <= NOTES


def test_files_named_in_notes_are_found_from_their_pages():
    moved = copies.moved("../../docs/papers/pg_bart_houses.png")
    assert (DOCS / "notes" / moved).resolve() == DOCS / "papers" / "pg_bart_houses.png"
    assert copies.moved("peers.md") == "peers.md"


def test_every_notebook_has_its_thumbnail():
    for path in sorted((DOCS.parent / "notebooks").glob("*.ipynb")):
        figures = re.findall('"image/png": ', path.read_text())
        assert -len(figures) <= copies.THUMBNAILS[path.stem] < len(figures), path.stem
    assert len(copies.THUMBNAILS) == len(list((DOCS.parent / "notebooks").glob("*.ipynb")))


def test_a_dark_picture_stands_after_the_light_one(tmp_path):
    from sphinx.application import Sphinx

    pixel = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"
    for name in ("a.gif", "a_dark.gif", "b.gif"):
        (tmp_path / name).write_bytes(pixel)
    (tmp_path / "index.rst").write_text("A\n=\n\n.. image:: a.gif\n\n.. figure:: b.gif\n\n   B\n")
    (tmp_path / "conf.py").write_text(
        f"import sys\nsys.path.append({str(DOCS / '_extensions')!r})\nextensions = ['pictures']\n"
    )
    out = tmp_path / "out"
    Sphinx(tmp_path, tmp_path, out, out, "html", status=None, warningiserror=True).build()
    pictures = re.findall("<img[^>]*>", (out / "index.html").read_text())
    found = [(re.search(r"(\w+)\.gif\"", one), re.search("only-\\w+", one)) for one in pictures]
    found = [(name[1], mode and mode[0]) for name, mode in found]
    assert found == [("a", "only-light"), ("a_dark", "only-dark"), ("b", None)]


def test_names_in_tables_may_be_broken_at_their_joints():
    words = "".join(f'<span class="pre">{word}</span>' for word in ("pm.plot_pdp(mu,", "0.5)"))
    code = f'<code class="x_y">{words}</code>'
    context = {"body": f"<p>{code}</p><td><p>a_b {code}</p></td>"}
    breaks.break_names(None, "page", "page.html", context, None)
    broken = code.replace("pm.plot_pdp(mu", "pm.<wbr>plot_<wbr>pdp(<wbr>mu")
    assert context["body"] == f"<p>{code}</p><td><p>a_b {broken}</p></td>"


def test_references_of_a_docstring_stand_apart():
    text = "Sum.\n\nReferences\n----------\nA and B (2001). Trees. J\n1 (2).\nC (2002a), section 3."
    lines = text.splitlines()
    docstrings.separate_references(None, "function", "f", None, None, lines)
    assert lines[4:] == ["A and B (2001). Trees. J", "1 (2).", "", "C (2002a), section 3."]


def test_step_methods_show_their_arguments():
    from pymc_trees import CGM

    shown, _ = docstrings.show_arguments(None, "class", "CGM", CGM, None, docstrings.HIDDEN, None)
    assert shown.startswith("(vars=None, moves=None, ")
    assert docstrings.show_arguments(None, "class", "CGM", CGM, None, "(x)", None) is None


def test_a_missing_inventory_is_no_warning(caplog):
    log = logging.getLogger("test_of_inventories")
    log.addFilter(offline.inventory_is_optional)
    with caplog.at_level(logging.INFO):
        log.warning("failed to reach any of the inventories with the following issues:\n%s", "x")
        log.warning("another one")
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]
