"""Settings of the documentation; build it with ``sphinx-build -W docs docs/_build/html``."""

from pymc_trees import __version__

project = "pymc_trees"
copyright = "the authors of pymc_trees"
author = "the authors of pymc_trees"
release = version = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
]
exclude_patterns = ["_build", "Thumbs.db", ".DS_Store"]
templates_path = ["_templates"]

html_theme = "furo"
html_title = f"pymc_trees {release}"

# One page for each public name, made from api.md.
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's Parameters say the types, with shapes and ranges
numpydoc_show_class_members = False

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
