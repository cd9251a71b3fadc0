"""The rules of the house, as tests: a machine holds them, nobody has to remember them."""

from __future__ import annotations

import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pymc_trees

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pymc_trees"
MAX_LINES = 500

# File, relative to the package -> why it may be longer.
LONG_FILES: dict[str, str] = {
    "core/explain/shapley.py": "Shapley values of a product, on which those of trees rest",
    "dcc/topology_model.py": "the gates as Ops, of which the densities are made",
    "predictors/elsewhere/sql.py": "the dialects, with the statements that differ by them",
    "targets/log_sums.py": "one reader, with an entry for each Op that it knows",
}

PUBLIC = sorted(getattr(pymc_trees, "__all__", []))
DOCUMENTED = [
    name
    for name in PUBLIC
    if callable(getattr(pymc_trees, name)) and not inspect.ismodule(getattr(pymc_trees, name))
]


def _section(docstring: str, title: str) -> str:
    """Text of one numpydoc section, "" where there is none."""
    found = re.search(
        rf"^{title}\n-{{{len(title)}}}\n(.*?)(?=^\S+( \S+)*\n-{{3,}}$|\Z)",
        docstring,
        re.DOTALL | re.MULTILINE,
    )
    return found.group(1).strip() if found else ""


def test_package_names_its_public_interface():
    assert PUBLIC, "pymc_trees.__all__ is missing or empty"
    assert len(set(PUBLIC)) == len(PUBLIC)


def test_no_file_is_longer_than_a_reader_likes():
    lengths = {
        path.relative_to(PACKAGE).as_posix(): len(path.read_text().splitlines())
        for path in PACKAGE.rglob("*.py")
    }
    too_long = {name: n for name, n in lengths.items() if n > MAX_LINES and name not in LONG_FILES}
    assert too_long == {}
    needless = {name for name in LONG_FILES if lengths.get(name, 0) <= MAX_LINES}
    assert needless == set(), "no longer long, or gone: take it off the list"


def test_kernels_are_compiled_with_the_cache_that_never_fails():
    plain = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(
            r"^from numba import .*\bnjit\b|numba\.n?jit\b", path.read_text(), re.MULTILINE
        )
    }
    assert plain == {"core/compile/cache.py"}, "take njit from pymc_trees.core.compile.cache"


def test_import_contracts_hold():
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command as m; m()",
            "--no-cache",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert " 0 broken" in result.stdout


def test_importing_the_package_needs_no_extra():
    code = "import sys, pymc_trees\nprint(*sorted({name.split('.')[0] for name in sys.modules}))"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = set(result.stdout.split())
    assert "pymc_trees" in loaded
    assert loaded.isdisjoint({"sklearn", "matplotlib"})


RECIPES = [
    f"{module}.{name}"
    for module in ("causal", "survival")
    for name in pkgutil.resolve_name(f"pymc_trees.{module}").__all__
    if name != "LongForm"  # what long_form returns
]


@pytest.mark.parametrize("name", [*DOCUMENTED, *RECIPES])
def test_public_name_is_described_in_numpydoc(name):
    docstring = inspect.getdoc(pkgutil.resolve_name(f"pymc_trees.{name}")) or ""
    assert _section(docstring, "Parameters"), f"{name}: no Parameters section"
    assert ">>>" in _section(docstring, "Examples"), f"{name}: no example in an Examples section"


def test_api_page_lists_every_public_name_and_no_other():
    listed = re.findall(r"^   ([\w.]+)$", (ROOT / "docs/api.md").read_text(), re.MULTILINE)
    at_the_top = [name for name in listed if "." not in name]
    assert sorted(at_the_top) == sorted(DOCUMENTED)
    for name in listed:
        assert callable(pkgutil.resolve_name(f"pymc_trees.{name}"))


def test_ci_runs_the_test_command_of_the_readme_and_then_a_share_of_the_rest():
    command = "python3 -m uv run --extra tests pytest -n 2"
    assert command in (ROOT / "README.md").read_text().splitlines()
    # Last, so that the output ends with pytest's own count.
    commands = (ROOT / ".ci/run").read_text().rstrip().splitlines()[-2:]
    rest = f'{command} -m full --share "$share"'
    assert [c.split(" --durations=")[0] for c in commands] == [command, rest]


def test_shared_helpers_of_the_tests_stand_in_support():
    tests = ROOT / "tests"
    modules = [
        path
        for path in tests.rglob("*.py")
        if path.relative_to(tests).parts[0] not in ("support", "extending")  # examples
    ]
    for path in modules:
        assert path.name.startswith("test_") or path.name == "conftest.py", f"{path}: to support/"
    importing = re.compile(r"^\s*(from|import) \.*(test_\w+|conftest)\b", re.MULTILINE)
    for path in tests.rglob("*.py"):
        assert not importing.search(path.read_text()), f"{path} imports a test module"


def test_version_and_changelog_agree():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()
