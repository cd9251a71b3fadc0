"""The guide tells the truth: its code runs, and the model it writes out is that of the recipe."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pymc as pm
import pytest
from support.few_draws import sample_few

import pymc_trees as pmt

PAGE = Path(__file__).parents[2] / "docs/survival.md"


@pytest.mark.full
@pytest.mark.usefixtures("quick_compile")
def test_its_code_runs_from_top_to_bottom(monkeypatch):
    sample_few(monkeypatch, 8)
    plt.switch_backend("Agg")
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"arm": rng.choice(["drug", "placebo"], 60), "age": rng.random(60)})
    time, event = rng.exponential(1.0, 60), rng.random(60) < 0.7
    names = {"X": X, "X_new": X[:3], "time": time, "event": event}
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 3
    exec(blocks[0], names)
    assert names["found"]["survival"].sizes["row"] == 3
    recipe = names["model"]
    exec(blocks[1].replace("times=20", "times=50"), names)
    exec(blocks[2], names)
    by_hand = names["model"]
    np.testing.assert_array_equal(by_hand["X"].get_value(), recipe["X"].get_value())
    f = {}
    for model in (recipe, by_hand):
        drawn = pm.sample(model=model)
        asked = {"var_name": "f_forest", "progressbar": False}
        f[model] = pmt.predictions(drawn, model, **asked)["prediction"]
    np.testing.assert_allclose(f[recipe], f[by_hand], rtol=1e-9)
    plt.close("all")
