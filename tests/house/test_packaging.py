"""What stands around the package: its metadata, its stub, its workflows and its recipe agree."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from support.public_names import STUB, stub

import pymc_trees

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PYTHONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))


def steps(path):
    """Steps of all jobs of a workflow."""
    jobs = yaml.safe_load(path.read_text())["jobs"]
    return [step for job in jobs.values() for step in job.get("steps", ())]


def test_metadata_is_complete():
    assert {"Homepage", "Documentation", "Changelog", "Issues", "Source"} <= set(PROJECT["urls"])
    assert all(url.startswith("https://") for url in PROJECT["urls"].values())
    assert all(author["name"] for author in PROJECT["authors"])
    assert PROJECT["readme"] == "README.md" and PROJECT["license"] == "Apache-2.0"
    assert {"Typing :: Typed", "Operating System :: OS Independent"} <= set(PROJECT["classifiers"])


def test_versions_agree():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    recipe = yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text())
    versions = {PROJECT["version"], str(citation["version"]), recipe["context"]["version"]}
    assert versions == {pymc_trees.__version__}


def test_groups_name_the_extras_of_development():
    groups = PYPROJECT["dependency-groups"]
    assert groups == {name: [f"pymc_trees[{name}]"] for name in ("tests", "docs", "benchmarks")}
    assert set(groups) <= set(PROJECT["optional-dependencies"])


def test_pymc_has_an_upper_bound_that_install_tells():
    [pymc] = [r for r in map(Requirement, PROJECT["dependencies"]) if r.name == "pymc"]
    assert {s.operator for s in pymc.specifier} == {">=", "<"}
    page = (ROOT / "docs/install.md").read_text()
    assert all(f"`{bound}`" in page for bound in pymc.specifier)


def test_stub_and_table_of_names_agree():
    assert STUB.read_text() == stub(), "run: python tests/support/public_names.py"
    imports = [node for node in ast.parse(stub()).body if isinstance(node, ast.ImportFrom)]
    names = [alias.asname for node in imports for alias in node.names]
    assert sorted(names) == sorted(pymc_trees.__all__)


def test_mypy_knows_the_public_names(tmp_path):
    lines = ["import pymc_trees as pmt", *(f"pmt.{name}" for name in pymc_trees.__all__)]
    used = tmp_path / "used.py"
    used.write_text("\n".join([*lines, "reveal_type(pmt.BART)", "pmt.NoSuchName"]))
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), str(used)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in result.stdout.splitlines() if str(used) in line]
    assert len(errors) == 2, result.stdout + result.stderr
    assert 'Revealed type is "def (name: Any, X: Any' in errors[0]
    assert 'Module has no attribute "NoSuchName"' in errors[1]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_say_when_and_run_what_exists(path):
    workflow = yaml.safe_load(path.read_text())
    assert workflow.get(True), "no event"  # YAML 1.1 reads `on` as true
    assert workflow["jobs"]
    for step in steps(path):
        assert ("uses" in step) != ("run" in step), step
        assert re.fullmatch(r"[\w.-]+(/[\w.-]+)+@[\w./-]+", step.get("uses", "a/b@c")), step
        command = step.get("run", "")
        for script in re.findall(r"\.ci/\w+", command):
            assert os.access(ROOT / script, os.X_OK), script
        for extra in re.findall(r"--extra (\w+)", command):
            assert extra in PROJECT["optional-dependencies"], command


def test_workflows_try_every_python_on_two_systems():
    tests = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())
    matrix = tests["jobs"]["quick-tier"]["strategy"]["matrix"]
    assert matrix["python"] == PYTHONS and len(matrix["system"]) >= 2
    newest = yaml.safe_load((ROOT / ".github/workflows/newest.yml").read_text())
    assert newest["jobs"]["quick-tier"]["strategy"]["matrix"]["python"] == PYTHONS


def test_checks_of_the_workflows_are_those_of_ci():
    commands = [step.get("run", "") for path in WORKFLOWS for step in steps(path)]
    script = (ROOT / ".ci/run").read_text()
    for command in re.findall(r"^python3 -m uv run (?!.*pytest).*$", script, re.MULTILINE):
        assert command.replace(" -W -q ", " -W ") in commands, command


def test_recipe_asks_for_what_the_package_asks_for():
    recipe = yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text())
    asked = map(Requirement, recipe["requirements"]["run"][1:])
    assert {str(r) for r in asked} == {str(Requirement(r)) for r in PROJECT["dependencies"]}
    oldest = SpecifierSet(f">={recipe['context']['python_min']}")
    assert SpecifierSet(PROJECT["requires-python"]) == oldest
    assert recipe["about"]["summary"] == PROJECT["description"]
    assert recipe["about"]["homepage"] == PROJECT["urls"]["Homepage"]
    assert recipe["source"]["url"].startswith(PROJECT["urls"]["Source"])


def test_no_registry_and_no_folder_of_a_machine_is_named():
    paths = [*WORKFLOWS, *(ROOT / ".ci").iterdir(), *(ROOT / "packaging").rglob("*.yaml")]
    registry = re.compile(r"pypi\.org|pythonhosted|anaconda\.org|index-url|/home/|/work/|/root/")
    for path in [*paths, ROOT / "pyproject.toml"]:
        assert not registry.search(path.read_text()), path
