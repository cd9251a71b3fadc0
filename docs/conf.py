"""Settings of the documentation; build it with ``sphinx-build -W docs docs/_build/html``."""

import sys
from pathlib import Path

from numpydoc.xref import DEFAULT_LINKS

from pymc_trees import __all__ as public_names
from pymc_trees import __version__

sys.path.append(str(Path(__file__).parent / "_extensions"))

project = "pymc_trees"
copyright = "the authors of pymc_trees"
author = "the authors of pymc_trees"
release = version = __version__

extensions = [
    "breaks",
    "copies",
    "docstrings",
    "myst_nb",
    "numpydoc",
    "offline",
    "pictures",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_design",
    "sphinxcontrib.bibtex",
]
exclude_patterns = ["_build", "Thumbs.db", ".DS_Store"]
templates_path = ["_templates"]
smartquotes = False  # quotation marks in a table may be code

html_theme = "furo"
html_title = f"pymc_trees {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]

# One page for each public name, made from api.md.
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's Parameters say the types, with shapes and ranges
numpydoc_show_class_members = False

# Names in docstrings are links, to pages here or of other projects.
default_role = "py:obj"
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"  # words that are no names
numpydoc_xref_aliases = {word: word for word in DEFAULT_LINKS} | {
    name: f":py:obj:`{name} <{target}>`"
    for name, target in {
        **{name: f"pymc_trees.{name}" for name in public_names},
        **{name: name for name in ("pymc.Model", "xarray.DataTree", "xarray.Dataset")},
        **{name: name for name in ("numpy.random.Generator", "matplotlib.axes.Axes")},
        "pymc_trees.Data": "pymc_trees.Data",
        "DataArray": "xarray.DataArray",
    }.items()
}
intersphinx_mapping = {
    name: (address, None)
    for name, address in {
        "arviz": "https://python.arviz.org/en/stable/",
        "matplotlib": "https://matplotlib.org/stable/",
        "numpy": "https://numpy.org/doc/stable/",
        "pandas": "https://pandas.pydata.org/docs/",
        "pymc": "https://www.pymc.io/projects/docs/en/stable/",
        "pytensor": "https://pytensor.readthedocs.io/en/latest/",
        "python": "https://docs.python.org/3/",
        "sklearn": "https://scikit-learn.org/stable/",
        "xarray": "https://docs.xarray.dev/en/stable/",
    }.items()
}
intersphinx_timeout = 10  # seconds

myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 3
mathjax4_config = {  # names with an underscore, in the formulas of models
    "loader": {"load": ["[tex]/textmacros"]},
    "tex": {"packages": {"[+]": ["textmacros"]}},
}

bibtex_bibfiles = ["references.bib"]
bibtex_reference_style = "author_year"

# Notebooks are shown as they are stored; a test runs them.
nb_execution_mode = "off"
nb_merge_streams = True
