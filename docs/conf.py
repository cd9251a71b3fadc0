"""Settings of the documentation; build it with ``sphinx-build -W docs docs/_build/html``."""

import base64
import json
import shutil
from pathlib import Path

from pymc_trees import __version__

project = "pymc_trees"
copyright = "the authors of pymc_trees"
author = "the authors of pymc_trees"
release = version = __version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinxcontrib.bibtex",
]
exclude_patterns = ["_build", "Thumbs.db", ".DS_Store"]
templates_path = ["_templates"]

html_theme = "furo"
html_title = f"pymc_trees {release}"

# One page for each public name, made from api.md.
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's Parameters say the types, with shapes and ranges
numpydoc_show_class_members = False

myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 3

bibtex_bibfiles = ["references.bib"]
bibtex_reference_style = "author_year"

# Notebooks are shown as they are stored; a test runs them.
nb_execution_mode = "off"


def bring_notebooks():
    """Copy the notebooks below the tutorials, with the first figure of each as its thumbnail."""
    here = Path(__file__).parent
    thumbnails = here / "tutorials" / "thumbnails"
    thumbnails.mkdir(exist_ok=True)
    for path in sorted((here.parent / "notebooks").glob("*.ipynb")):
        copy = here / "tutorials" / path.name
        if copy.exists() and copy.stat().st_mtime >= path.stat().st_mtime:
            continue  # a page that has not changed is not built again
        shutil.copy2(path, copy)
        cells = json.loads(path.read_text())["cells"]
        outputs = [output for cell in cells for output in cell.get("outputs", ())]
        figures = (output.get("data", {}).get("image/png") for output in outputs)
        png = next(figure for figure in figures if figure)
        (thumbnails / f"{path.stem}.png").write_bytes(base64.b64decode("".join(png)))


bring_notebooks()
