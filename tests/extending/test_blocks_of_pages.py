"""The blocks of docs/extending run as a reader pastes them, each example under its own name."""

import importlib
import re
import sys
from pathlib import Path

import matplotlib as mpl
import pymc as pm
import pytest

from extending.gumbel_likelihood import GumbelLikelihood
from pymc_trees.targets.choose import TARGETS
from pymc_trees.targets.likelihoods.contract import ROW_LIKELIHOODS

mpl.use("Agg")
ROW_LIKELIHOODS.pop(pm.Gumbel.rv_type, None)  # other tests read a pm.Gumbel from its graph
DOCS = Path(__file__).parents[2] / "docs" / "extending"
EXAMPLE = re.compile(r"literalinclude\} \.\./\.\./tests/extending/(\w+)\.py")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = {
    page.stem: (EXAMPLE.findall(page.read_text()), BLOCK.findall(page.read_text()))
    for page in sorted(DOCS.glob("*.md"))
    if EXAMPLE.search(page.read_text())
}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_where_its_example_is_saved_and_how_it_is_used(page):
    examples, blocks = PAGES[page]
    text = (DOCS / f"{page}.md").read_text()
    assert len(blocks) == len(examples)
    for name, block in zip(examples, blocks, strict=True):
        assert f"`{name}.py`" in text and f" {name}" in block


@pytest.fixture
def short(monkeypatch):
    """Runs of a few draws; what examples register is forgotten afterwards."""
    few = {"draws": 4, "tune": 4, "chains": 1, "cores": 1, "progressbar": False}
    sample = pm.sample
    monkeypatch.setattr(
        pm,
        "sample",
        lambda **given: sample(**given, **few, compute_convergence_checks=False, random_seed=1),
    )
    monkeypatch.setattr("pymc_trees.targets.choose.TARGETS", [*TARGETS])
    monkeypatch.setitem(ROW_LIKELIHOODS, pm.Gumbel.rv_type, [GumbelLikelihood])


@pytest.mark.full
@pytest.mark.usefixtures("quick_compile", "short")
@pytest.mark.parametrize("page", PAGES)
def test_blocks_of_a_page_run(page, monkeypatch):
    examples, blocks = PAGES[page]
    for name, block in zip(examples, blocks, strict=True):
        monkeypatch.setitem(sys.modules, name, importlib.import_module(f"extending.{name}"))
        exec(compile(block, f"{page}.md", "exec"), {"__name__": "block"})
