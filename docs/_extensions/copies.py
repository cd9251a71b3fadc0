"""Pages that stand elsewhere in the repository: notebooks and notes are copied before a build.

Pages link to a note by ``{download}`note <../benchmarks/notes/peers.md>```, which is true in the
repository; on the site that link leads to the page of the note.
"""

import base64
import json
import re
import shutil
from pathlib import Path, PurePosixPath

DOCS = Path(__file__).parents[1]
NOTES = DOCS.parent / "benchmarks" / "notes"
# The figure of a notebook that stands on its card, counted from 0.
THUMBNAILS = {
    "01_regression": -1,
    "02_deep_tree": 0,
    "03_counts": 1,
    "04_two_forests": 0,
    "05_dart": 1,
    "06_categories_and_missing_cells": 1,
    "07_two_soft_trees": 0,
    "08_coal_and_bikes": 0,
    "09_hawks_softmax": -2,
    "10_heteroscedasticity": 1,
    "11_quantiles": 0,
    "12_model_checks": 0,
    "13_causal": -1,
    "14_survival": 0,
    "15_tables_and_boosting": 0,
    "16_slopes": 0,
    "17_monotone_dose_response": 3,
    "18_smooth_functions": 0,
    "19_six_samplers": 0,
    "20_schools": 0,
    "21_areas": 0,
    "22_partially_linear": -2,
    "mondrian_bayesian_optimisation": 0,
    "mondrian_learning_from_a_stream": 1,
}
TO_NOTE = re.compile(r"\{download\}`([^`<]+?)\s*<[./]*/benchmarks/notes/(\w+)\.md>`")
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)")


def copy_notebooks() -> None:
    """Copy the notebooks below the tutorials, with a figure of each as its thumbnail."""
    thumbnails = DOCS / "tutorials" / "thumbnails"
    thumbnails.mkdir(exist_ok=True)
    for path in sorted((DOCS.parent / "notebooks").glob("*.ipynb")):
        copy = DOCS / "tutorials" / path.name
        if not copy.exists() or copy.stat().st_mtime < path.stat().st_mtime:
            shutil.copy2(path, copy)  # a page that has not changed is not built again
        cells = json.loads(path.read_text())["cells"]
        outputs = [output for cell in cells for output in cell.get("outputs", ())]
        figures = [output.get("data", {}).get("image/png") for output in outputs]
        png = [figure for figure in figures if figure][THUMBNAILS[path.stem]]
        write(thumbnails / f"{path.stem}.png", base64.b64decode("".join(png)))


def copy_notes() -> None:
    """Copy the notes on measurements; their README is the index of the folder."""
    folder = DOCS / "notes"
    folder.mkdir(exist_ok=True)
    for path in sorted(NOTES.glob("*.md")):
        index = path.stem == "README"
        text = LINK.sub(lambda link: f"]({moved(link[1])}{link[2] or ''})", path.read_text())
        if index:
            text = f"---\norphan: true\n---\n\n{text}\n```{{toctree}}\n:hidden:\n:glob:\n\n*\n```\n"
        write(folder / ("index.md" if index else path.name), text.encode())


def moved(address: str) -> str:
    """Address of a file, from ``benchmarks/notes``, as it is from ``docs/notes``."""
    return re.sub(r"^\.\./\.\./docs/", "../", address)


def write(path: Path, content: bytes) -> None:
    """Write a file, unless it is there with this content."""
    if not path.exists() or path.read_bytes() != content:
        path.write_bytes(content)


def link_notes(app, page: str, source: list[str]) -> None:
    """Let links to notes lead to their pages."""
    up = "../" * (len(PurePosixPath(page).parts) - 1)
    source[0] = TO_NOTE.sub(rf"[\1]({up}notes/\2.md)", source[0])


def setup(app):
    """Copy before pages are looked for, and change links as they are read."""
    copy_notebooks()
    copy_notes()
    app.connect("source-read", link_notes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
