"""Keywords of pymc-bart: the errors, the page for those who come from there, and our signatures."""

import inspect
import re
from pathlib import Path

import pytest

import pymc_trees as pmt
from pymc_trees.posterior.reading.features import RENAMED

PAGE = (Path(__file__).parents[2] / "docs/from_pymc_bart.md").read_text()
PLOTS = "plot_pdp plot_ice plot_ale plot_convergence plot_variable_inclusion".split()
OF_DRAWS = [
    *PLOTS,
    "get_variable_inclusion",
    "get_interaction_inclusion",
    "compute_variable_importance",
    "permutation_importance",
    "partial_dependence",
]
OF_RESULTS = ["plot_variable_importance", "plot_scatter_submodels", "plot_shap"]


def test_the_page_has_the_table_of_the_errors():
    table = PAGE.split("| keyword of pymc-bart | here |")[1].split("\n\n")[0]
    assert dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", table, re.MULTILINE)) == RENAMED


def test_keywords_in_calls_on_the_page_are_ours_or_in_the_table():
    for name, call in re.findall(r"`pmb\.(\w+)\((.*?)\)`", PAGE):
        if name not in OF_DRAWS:
            continue
        own = inspect.signature(getattr(pmt, name)).parameters
        for keyword in re.findall(r"(\w+)=", call):
            assert keyword in own or keyword in RENAMED


def test_what_is_named_in_their_place_exists():
    known = {one for name in OF_DRAWS for one in inspect.signature(getattr(pmt, name)).parameters}
    named = {word for text in RENAMED.values() for word in re.findall(r"\b([a-z_]+)=", text)}
    assert named - {"figure_kwargs", "col_wrap"} <= known


@pytest.mark.parametrize("name", [*OF_DRAWS, *OF_RESULTS])
@pytest.mark.parametrize("keyword", RENAMED)
def test_a_keyword_of_pymc_bart_is_answered(name, keyword):
    function = getattr(pmt, name)
    if keyword in inspect.signature(function).parameters:
        return
    with pytest.raises(TypeError, match=f"{name} has no {keyword}=, a keyword of pymc-bart. Here:"):
        function(None, **{keyword: 1})


@pytest.mark.parametrize("name", [*PLOTS, *OF_RESULTS, "plot_tree", "plot_overlap"])
def test_backends_are_checked_before_anything_is_asked(name):
    with pytest.raises(ValueError, match="backend='ggplot': choose from"):
        getattr(pmt, name)(None, backend="ggplot")
