"""Docstrings on the site: a line for each reference, and the arguments of step methods."""

import inspect
import re

REFERENCE = re.compile(r"^[A-Z][^.]* \(\d{4}\w?\)[.:,]")
"""How a reference begins: names and a year. Its further lines begin otherwise."""
HIDDEN = "(*args, **kwargs)"


def separate_references(app, what, name, thing, options, lines: list[str]) -> None:
    """Put an empty line before each reference but the first."""
    if "References" not in lines:
        return
    start = lines.index("References") + 2
    for at in range(len(lines) - 1, start, -1):
        if REFERENCE.match(lines[at]) and lines[at - 1].strip():
            lines.insert(at, "")


def show_arguments(app, what, name, thing, options, signature, returns):
    """Arguments of `__init__`, where PyMC's steps hide them behind their `__new__`."""
    if what == "class" and signature == HIDDEN:
        arguments = inspect.signature(thing.__init__)
        kept = [one for one in arguments.parameters.values() if one.name != "self"]
        plain = [one.replace(annotation=inspect.Parameter.empty) for one in kept]
        return str(inspect.Signature(plain)), returns
    return None


def setup(app):
    """Change docstrings before numpydoc reads them."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", separate_references, priority=400)
    app.connect("autodoc-process-signature", show_arguments)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
