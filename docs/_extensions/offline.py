"""A build and a site without a network.

Formulas are drawn by MathJax from the site itself, where the package `sphinx-mathjax-offline` is
installed (one of the requirements `docs`); else from MathJax's usual address. Names of other
projects become links where their inventories can be fetched; where not, they are plain, which is no
reason for a warning.
"""

import logging
from importlib.util import find_spec
from pathlib import Path

from sphinx.util.fileutil import copy_asset

MATHJAX = "sphinx-mathjax-offline"
SCRIPT = "tex-chtml.js"
FONTS = "output/chtml/fonts/woff-v2"
MACROS = "input/tex/extensions/textmacros.js"


def inventory_is_optional(record: logging.LogRecord) -> bool:
    """Let a missing inventory be news instead of a warning."""
    if str(record.msg).startswith("failed to reach any of the inventories"):
        record.levelno, record.levelname = logging.INFO, "INFO"
    return True


def copy_mathjax(app, exception) -> None:
    """Copy MathJax and its fonts to the site."""
    if exception is None:
        found = find_spec(MATHJAX)
        folder = Path(found.origin).parent / "static" / "mathjax"
        copy_asset(folder / SCRIPT, app.outdir / "_static" / "mathjax")
        copy_asset(folder / FONTS, app.outdir / "_static" / "mathjax" / FONTS)
        macros = app.outdir / "_static" / "mathjax" / MACROS
        copy_asset(folder / MACROS, macros.parent)


def setup(app):
    """Quieten intersphinx, and ship MathJax if it is there."""
    logging.getLogger("sphinx.sphinx.ext.intersphinx").addFilter(inventory_is_optional)
    if find_spec(MATHJAX):
        app.connect("build-finished", copy_mathjax)
        app.connect(
            "config-inited",
            lambda app, config: setattr(config, "mathjax_path", f"mathjax/{SCRIPT}"),
        )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
