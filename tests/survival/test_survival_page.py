"""The models that the page on survival writes out are those of the recipes."""

import re
from pathlib import Path

import numpy as np
import pymc as pm
import pytest
from support.few_draws import sample_few

import pymc_trees as pmt
from pymc_trees import survival

PAGE = Path(__file__).parents[2] / "docs/survival.md"


def block(words: str) -> str:
    """The block of code that has these words."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    [found] = [code for code in blocks if words in code]
    return found


@pytest.fixture
def on_the_page(monkeypatch):
    """What its first block leaves, with few draws."""
    sample_few(monkeypatch, 8)
    names = {}
    exec(block("make_survival"), names)
    return names


@pytest.mark.full
@pytest.mark.usefixtures("quick_compile")
def test_the_long_form_gives_the_draws_of_the_recipe(on_the_page):
    exec(block("by_hand"), on_the_page)
    recipe, by_hand = on_the_page["model"], on_the_page["by_hand"]
    np.testing.assert_array_equal(by_hand["X"].get_value(), recipe["X"].get_value())
    f = {}
    for model in (recipe, by_hand):
        drawn = pm.sample(model=model)
        asked = {"var_name": "f_forest", "progressbar": False}
        f[model] = pmt.predictions(drawn, model, **asked)["prediction"]
    np.testing.assert_allclose(f[recipe], f[by_hand], rtol=1e-9)


@pytest.mark.full
def test_log_times_have_the_likelihood_of_the_recipe(on_the_page):
    exec(block("log_times"), on_the_page)
    outcome = (on_the_page[name] for name in ("X", "months", "relapse"))
    recipe, by_hand = survival.accelerated_failure_time(*outcome), on_the_page["log_times"]
    point = recipe.initial_point()
    point["f_forest"] = pm.draw(recipe["f_forest"], random_seed=1)
    own = [model.compile_logp([model["time"]])(point) for model in (recipe, by_hand)]
    assert own[0] == pytest.approx(own[1], rel=1e-12)
    start = recipe.compile_logp([recipe["time"]])(recipe.initial_point())
    assert own[0] != pytest.approx(start)  # the trees matter
