"""A model with forests as PyMC displays it: settings by name, no arrays, no fingerprints."""

import numpy as np
import pymc as pm
import pytest
from pymc.printing import model_table
from rich.console import Console

import pymc_trees as pmt

X = np.random.default_rng(1).random((12, 2))
Y = X[:, 0]
LEAF = pmt.NormalLeaf(0.5, 0.25)

SHOWN = {
    "BART": (
        lambda: pmt.BART("f", X, m=7, leaf=LEAF),
        "m=7, alpha=0.95, beta=2, NormalLeaf(0.5, 0.25)",
    ),
    "a tree": (
        lambda: pmt.DecisionTree("f", X, leaf=LEAF, beta=1.0),
        "m=1, alpha=0.95, beta=1, NormalLeaf(0.5, 0.25)",
    ),
    "random settings": (
        lambda: pmt.BART(
            "f",
            X,
            m=3,
            leaf=pmt.NormalLeaf(0.0, pm.HalfNormal("tau")),
            split_prior=pm.Dirichlet("w", np.ones(2)),
        ),
        "m=3, alpha=0.95, beta=2, split_prior=f(w), NormalLeaf(0, tau)",
    ),
    "of a Mondrian process": (
        lambda: pmt.BART("f", X, m=3, leaf=LEAF, tree_prior=pmt.MondrianPrior(1.5)),
        "m=3, lifetime=1.5, NormalLeaf(0.5, 0.25)",
    ),
    "soft": (
        lambda: pmt.SoftBART("f", X, m=4, leaf=LEAF, split_prior=[1, 1]),
        "m=4, alpha=0.95, beta=2, NormalLeaf(0.5, 0.25)",
    ),
    "a soft tree": (
        lambda: pmt.SoftDecisionTree("f", X, leaf=LEAF),
        "alpha=0.95, beta=1, NormalLeaf(0.5, 0.25)",
    ),
}


def shown(model, forest):
    """All that PyMC writes of a forest."""
    console = Console(width=200)
    with console.capture() as table:
        console.print(model_table(model))
    return [model.str_repr(), forest.str_repr(), table.get()]


@pytest.mark.parametrize("case", SHOWN)
def test_a_forest_shows_its_settings(case):
    declare, settings = SHOWN[case]
    with pm.Model() as model:
        declare()
    forest = model["f_forest"]
    name = forest.owner.op._print_name[0]
    for text in shown(model, forest):
        assert f"{name}({settings})" in text
        assert "<constant>" not in text.split("f_forest")[1].split("\n")[0]
    for latex in (model._repr_latex_(), forest._repr_latex_()):
        line = latex.split(r"\sim")[-1] if latex.startswith(r"$\text") else latex
        assert rf"\operatorname{{{name}}}(" in line
        assert r"\text{NormalLeaf}(" in line
        assert "e+1" not in latex


def test_without_settings_as_pymc_writes_it():
    with pm.Model() as model:
        pmt.BART("f", X, m=7, leaf=LEAF)
    assert "f_forest ~ Forest\n" in model.str_repr(include_params=False)


def test_a_leaf_of_many_numbers_is_short():
    with pm.Model() as model:
        pmt.BART("f", X, Y, m=7, response="linear")
        pmt.DecisionTree("g", X, leaf=pmt.DirichletLeaf(0.5, 40))
    assert max(map(len, model.str_repr().splitlines())) < 200


def test_pictures_of_models_have_short_labels():
    pytest.importorskip("graphviz")
    with pm.Model() as model:
        mu = pmt.BART("f", X, m=7, leaf=LEAF)
        pm.Normal("y", mu, 1.0, observed=Y)
    labels = [line for line in pm.model_to_graphviz(model).source.splitlines() if "label=" in line]
    assert max(map(len, labels)) < 80
    assert any("f_forest" in label for label in labels)
