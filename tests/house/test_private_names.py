"""Names of PyMC, PyTensor, ArviZ and numba that are not public: one page lists all, and no others.

A name is public if it has a path without underscores through one of the modules in `PUBLIC`, which
the libraries document. Everything else that the package uses is found in its sources:

- names that are imported, or reached through an imported module;
- attributes with a leading underscore that the package does not define itself;
- methods with a leading underscore that its classes override in classes of the libraries;
- functions that `hooks` wraps, public ones too.
"""

import ast
import importlib
import inspect
import pkgutil
import re
import warnings
from functools import cache
from pathlib import Path

import pymc_trees.hooks
from pymc_trees.hooks.wrap import WRAPPED

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pymc_trees"
TREES = {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}
PAGE = (ROOT / "docs/architecture/private_names.md").read_text()

LIBRARIES = {"pymc", "pytensor", "arviz", "arviz_base", "arviz_plots", "arviz_stats", "numba"}
PUBLIC = {
    *LIBRARIES,
    "arviz_plots.visuals",
    "arviz_stats.base",
    "numba.config",
    "numba.extending",
    "numba.extending.models",
    "numba.typed",
    "numba.types",
    "pymc.backends",
    "pymc.dims",
    "pymc.dims.distributions.transforms",
    "pymc.distributions.transforms",
    "pymc.exceptions",
    "pymc.logprob",
    "pymc.math",
    "pymc.sampling",
    "pymc.smc",
    "pymc.stats",
    "pymc.step_methods",
    "pymc.tuning",
}
"""Modules whose names are public, those with an underscore excepted."""
DOCUMENTED = {"compile", "gradient", "graph", "raise_op", "scalar", "tensor", "xtensor"}
"""Packages of PyTensor of which all modules count: a graph is read by the classes of its Ops."""

# Attribute with an underscore of another library -> that library.
OTHERS = {"_backend": "joblib", "_getframe": "sys"}
OF_NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}


def library(name: str) -> str:
    return name.split(".")[0]


@cache
def is_public(name: str) -> bool:
    """Whether an object of a library is public, perhaps by a shorter path than this one."""
    parts = name.split(".")
    if any(part.startswith("_") for part in parts):
        return False
    if parts[0] == "pytensor" and parts[1] in DOCUMENTED:
        return True
    named = pkgutil.resolve_name(name)
    modules = [pkgutil.resolve_name(m) for m in PUBLIC if library(m) == parts[0]]
    if inspect.ismodule(named):
        return named in modules
    with warnings.catch_warnings():  # about names at a library's root that are to go
        warnings.simplefilter("ignore")
        return any(getattr(module, parts[-1], None) is named for module in modules)


def reached(tree: ast.AST) -> set[str]:
    """Full names of the libraries that a file imports, or reaches through a module."""
    named, modules = {}, {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and library(node.module) in LIBRARIES:
            named |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        elif isinstance(node, ast.Import):
            ours = [a for a in node.names if library(a.name) in LIBRARIES]
            modules |= {a.asname or library(a.name): a.asname and a.name for a in ours}
    found = set(named.values())
    for node in ast.walk(tree):
        first, *rest = ast.unparse(node).split(".") if isinstance(node, ast.Attribute) else [""]
        if first in modules and all(re.fullmatch(r"\w+", part) for part in rest):
            found.add(".".join([modules[first] or first, *rest]))
    return {name for name in found if name in named.values() or is_of_module(name)}


@cache
def is_of_module(name: str) -> bool:
    """Whether a dotted name is that of something in a module, and not of a module."""
    holder, _, last = name.rpartition(".")
    try:
        named = pkgutil.resolve_name(name)
    except (AttributeError, ImportError):
        return False
    is_held = inspect.ismodule(pkgutil.resolve_name(holder)) and not inspect.ismodule(named)
    return is_held and not last.startswith("__")


def has_underscore(name: str) -> bool:
    return bool(re.match(r"_[a-z]", name)) and name not in OF_NAMED_TUPLES


def names_of_its_own() -> set[str]:
    """Names with an underscore that the package defines."""
    found = set()
    for tree in TREES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
        for kind in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
            for node in ast.walk(kind):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    if ast.unparse(node.value) in ("self", "cls"):
                        found.add(node.attr)
    return found


def attributes() -> set[str]:
    """Attributes with an underscore, also in text, that the package does not define."""
    found = set()
    for tree in TREES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr"):
                found |= {a.value for a in node.args if isinstance(a, ast.Constant)} - {None}
    found = {name for name in found if isinstance(name, str) and has_underscore(name)}
    return found - names_of_its_own() - set(OTHERS)


def overridden() -> set[str]:
    """Names with an underscore that classes share with the sources of their bases in a library."""
    found = set()
    for path, tree in TREES.items():
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in tree.body:
            if not isinstance(node, ast.ClassDef):
                continue
            kind = getattr(importlib.import_module(module), node.name)
            bases = [b for b in kind.__mro__ if library(b.__module__) in LIBRARIES]
            theirs = " ".join(inspect.getsource(b) for b in bases)
            ours = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
            ours |= {n.name for n in ast.walk(node) if isinstance(n, ast.FunctionDef)}
            ours |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            found |= {n for n in ours if has_underscore(n) and re.search(rf"\b{n}\b", theirs)}
    return found


def used() -> set[str]:
    """All names that are not public, those of attributes with a dot before them."""
    names = {name for tree in TREES.values() for name in reached(tree) if not is_public(name)}
    assert pymc_trees.hooks
    last = {name.rpartition(".")[2] for name in names}
    return names | set(WRAPPED) | {f".{name}" for name in (attributes() | overridden()) - last}


def listed() -> list[str]:
    """Names in the first column of the page's tables of names."""
    rows = re.findall(r"^\| (`[^|]*) \|", PAGE, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def test_private_names_are_listed():
    assert sorted(used() - set(listed())) == [], "list them, with the reason, or do without"


def test_listed_names_are_used():
    assert sorted(set(listed()) - used()) == [], "no longer used: take them off the page"
    assert len(set(listed())) == len(listed())
