"""What is built and published: a wheel of the package alone, sources with their tests and docs."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def files_below(folder):
    """Files of a folder that are no compile caches, relative to the root."""
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Names of the files in the wheel and in the archive of sources."""
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(out)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    [wheel], [sources] = out.glob("*.whl"), out.glob("*.tar.gz")
    with tarfile.open(sources) as archive:
        inside = {name.split("/", 1)[1] for name in archive.getnames()}
    return set(zipfile.ZipFile(wheel).namelist()), inside


def test_wheel_holds_the_package_and_nothing_else(built):
    wheel, _ = built
    about = {name for name in wheel if name.split("/")[0].endswith(".dist-info")}
    assert wheel - about == files_below("pymc_trees")
    assert any(name.endswith("licenses/LICENSE") for name in about)
    # Without it type checkers take the package for one without types (PEP 561).
    assert {"pymc_trees/py.typed", "pymc_trees/__init__.pyi"} <= wheel
    assert "pymc_trees/data/bikes.csv" in wheel


def test_sources_hold_what_is_needed_to_test_and_document_them(built):
    _, inside = built
    assert files_below("pymc_trees") | files_below("tests") | files_below("packaging") <= inside
    assert files_below("benchmarks/notes") | files_below("benchmarks/results") <= inside
    assert {path for path in files_below("notebooks") if path.endswith(".ipynb")} <= inside
    assert files_below(".ci") | files_below(".github") <= inside
    assert {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "LICENSE"} <= inside
    assert {"pyproject.toml", "conftest.py", ".pre-commit-config.yaml", "docs/conf.py"} <= inside


def test_sources_hold_nothing_that_a_run_leaves_behind(built):
    _, inside = built
    made = {"uv.lock", ".venv", ".git", "__pycache__", ".pytest_cache", ".mypy_cache", "_build"}
    made |= {"generated", "thumbnails", ".import_linter_cache", ".ruff_cache", ".hypothesis"}
    assert not [name for name in inside if made & set(name.split("/"))]
    assert not [name for name in inside if name.startswith("docs/notes/")]
    assert not [name for name in inside if name.endswith((".pyc", ".nbi", ".nbc", ".nc"))]
