"""Maps in the documentation, compared with the territory."""

import ast
import pkgutil
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pymc_trees"


def folders():
    """Folders of the package, relative to it."""
    return sorted(
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_dir() and path.name != "__pycache__"
    )


def folders_drawn():
    """Folders in the drawing of docs/architecture.md, by their indentation."""
    text = (ROOT / "docs/architecture.md").read_text()
    drawing = re.search(r"```text\npymc_trees/\n(.*?)```", text, re.DOTALL)[1]
    found, path = [], []
    for line in drawing.splitlines():
        if not line.strip():
            continue
        depth = (len(line) - len(line.lstrip())) // 2 - 1
        names = re.split(r" {2,}| (?=[a-z]+ [a-z])", line.strip(), maxsplit=1)[0]
        for name in names.split(", "):
            path[depth:] = [name]
            if (PACKAGE / "/".join(path)).with_suffix(".py").exists():
                continue  # a file
            found.append("/".join(path))
    return sorted(found)


def test_the_drawing_of_the_folders_is_that_of_the_tree():
    assert folders_drawn() == [f for f in folders() if f != "."]


@pytest.mark.parametrize("folder", [f for f in folders() if f != "data"])
def test_a_folder_lists_its_modules(folder):
    """Its ``__init__`` names each of its files and folders."""
    text = (PACKAGE / folder / "__init__.py").read_text()
    inside = {
        path.stem
        for path in (PACKAGE / folder).iterdir()
        if not path.name.startswith("__") and (path.suffix == ".py" or path.is_dir())
    }
    named = set(re.findall(r"[`.](\w+)`", text))
    assert inside - named == set()


def test_every_name_among_the_symbols_exists():
    text = (ROOT / "docs/extending/symbols.md").read_text()
    names = re.findall(r"`((?:core|inference|dcc|mondrian|sharded)\.[\w.]+)`", text)
    assert len(names) > 40
    for name in names:
        found = pkgutil.resolve_name(f"pymc_trees.{name.rsplit('.', 1)[0]}")
        last = name.rsplit(".", 1)[1]
        known = getattr(found, "_fields", ()) or getattr(found, "__dataclass_fields__", ())
        if not (hasattr(found, last) or last in known):
            pkgutil.resolve_name(f"pymc_trees.{name}")


JOURNEYS = {
    title: re.findall(r"`((?:\w+/)+\w+)`", text)
    for title, text in re.findall(
        r"^## (.+?)$(.+?)(?=^## |\Z)",
        (ROOT / "docs/architecture/journeys.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
}
"""Files that a reader opens to follow a call, in order."""
MOST_FILES = 25
"""Files of a journey."""
LED_TO = {
    "step_methods/hybrid": "PyMC assigns it",
    "hooks/data": "PyMC calls it",
    "core/moves/grow_prune": "a step has moves by name",
    "core/priors/cgm": "kernels are chosen by the type of the prior",
    "targets/likelihoods/counts": "likelihoods are in a table by distribution",
    "step_methods/kernels/local_moves": "in the journey before, the step imports it",
    "step_methods/kernels/tree_redraw": "in the journey before, the step imports it",
}
"""Files that no file before them on their journey imports, and what leads there."""


def imported_by(file: str) -> set[str]:
    """Files of the package that a file of it imports."""
    found = set()
    for node in ast.walk(ast.parse((PACKAGE / f"{file}.py").read_text())):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("pymc_trees."):
            module = node.module.removeprefix("pymc_trees.").replace(".", "/")
            found |= {module, *(f"{module}/{alias.name}" for alias in node.names)}
    return found


def test_there_are_five_journeys():
    assert len(JOURNEYS) == 5


@pytest.mark.parametrize("title", JOURNEYS)
def test_a_journey_can_be_followed(title):
    files = JOURNEYS[title]
    assert 5 < len(files) <= MOST_FILES
    assert len(files) == len(set(files)), "a file is named twice"
    assert [file for file in files if not (PACKAGE / f"{file}.py").exists()] == []
    lost = [
        file
        for k, file in enumerate(files)
        if k > 0 and not any(file in imported_by(before) for before in files[:k])
    ]
    assert set(lost) <= set(LED_TO)


def test_every_reference_to_the_bibliography_exists():
    keys = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "docs/references.bib").read_text(), re.M))
    assert len(keys) > 15
    cited = {
        key
        for page in (ROOT / "docs").rglob("*.md")
        for key in re.findall(r"\{cite:?p?t?\}`([\w,]+)`", page.read_text())
    }
    assert {k for many in cited for k in many.split(",")} <= keys
