"""Code on pages names what exists: it compiles, its names resolve, its keywords are known.

Blocks of Python, and code within sentences, are read and not run: `pmt.name` and imported names are
looked up, and the keywords of calls are compared with signatures.
"""

import ast
import importlib
import inspect
import re
from pathlib import Path

import numpy as np
import pymc as pm
import pytest

import pymc_trees as pmt

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *(p for p in sorted((ROOT / "docs").rglob("*.md")) if not {"_build", "notes"} & set(p.parts)),
]
BLOCK = re.compile(r"^( *)```python\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
KNOWN = {"pmt": pmt, "pymc_trees": pmt, "pm": pm, "np": np}
"""What names on pages stand for without an import."""
IMPORTED = ("pymc", "pymc_trees", "numpy")
"""Packages whose names are looked up."""


def blocks(text: str) -> list[str]:
    """Blocks of Python of a page."""
    return [
        "".join(line.removeprefix(indent) for line in code.splitlines(keepends=True))
        for indent, code in BLOCK.findall(text)
    ]


def spans(text: str) -> list[str]:
    """Code within sentences that calls something of the package."""
    text = re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"(?<!`)`([^`]+)`(?!`)", text)
    return [" ".join(span.split()) for span in found if "pmt." in span]


def imports(tree) -> dict:
    """Names that code imports, and what they are; wrong ones raise."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in IMPORTED:
                    whole = importlib.import_module(alias.name)
                    root = importlib.import_module(alias.name.split(".")[0])
                    names[alias.asname or root.__name__] = whole if alias.asname else root
        elif isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in IMPORTED:
            for alias in node.names:
                module = importlib.import_module(node.module)
                if not hasattr(module, alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")
                names[alias.asname or alias.name] = getattr(module, alias.name)
    return names


def what(node, names):
    """What an expression of names and attributes stands for, None where that is not known."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = what(node.value, names)
        return None if owner is None else getattr(owner, node.attr)
    return None


def faults(code: str, known: dict) -> list[str]:
    """Names that do not exist and keywords that are not taken, of some code."""
    tree = ast.parse(code)
    try:
        names = known | imports(tree)
    except ImportError as error:
        return [str(error)]
    assigned = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    names = {name: thing for name, thing in names.items() if name not in assigned}
    found = []
    for node in ast.walk(tree):
        try:
            what(node, names)
            called = what(node.func, names) if isinstance(node, ast.Call) else None
        except AttributeError as error:
            found.append(str(error))
            continue
        if (getattr(called, "__module__", None) or "").startswith("pymc_trees"):
            found += wrong_keywords(node, called)
    return sorted(set(found))


def wrong_keywords(call: ast.Call, called) -> list[str]:
    """What a call gives that its function does not take."""
    try:
        takes = inspect.signature(called)
    except ValueError:
        return []
    positional = [None] * len([a for a in call.args if not isinstance(a, ast.Starred)])
    keywords = {keyword.arg: None for keyword in call.keywords if keyword.arg}
    try:
        takes.bind_partial(*positional, **keywords)
    except TypeError as error:
        return [f"{ast.unparse(call.func)}: {error}"]
    return []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_code_names_what_exists(page):
    known, found = dict(KNOWN), []
    text = page.read_text()
    for code in blocks(text):
        found += faults(code, known)
        known |= imports(ast.parse(code))
    for span in spans(text):
        try:
            ast.parse(span)
        except SyntaxError:
            span = " ".join(re.findall(r"pmt(?:\.\w+)+", span)[:1])
        found += faults(span, known)
    assert found == []


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("pmt.BART('mu', X, y, m=50)", None),
        ("pmt.BART('mu', X, y, trees=50)", "trees"),
        ("pmt.BARD('mu', X, y)", "BARD"),
        ("from pymc_trees import no_such_name", "no_such_name"),
        ("from pymc_trees import causal\ncausal.overlap(p, z, arms=1)", "arms"),
        ("pm.Normul('y')", "Normul"),
        ("pmt = other()\npmt.anything()", None),
    ],
)
def test_faults_are_seen(code, fault):
    found = faults(code, KNOWN)
    assert (found == []) if fault is None else (len(found) == 1 and fault in found[0])
