"""How long chains are where nobody says so."""

import logging

import numpy as np
import pymc as pm
import pytest
from support.small_models import FAST, bart_model, soft_model

import pymc_trees as pmt
from pymc_trees.inference.chains import lengths as lengths_of_chains
from pymc_trees.inference.chains.lengths import lengths

pytestmark = pytest.mark.usefixtures("quick_compile")


@pytest.mark.parametrize(
    ("n", "m", "draws"),
    [
        (100, 200, 1000),
        (10_000, 200, 1000),
        (20_000, 200, 500),
        (50_000, 200, 200),
        (10**6, 50, 200),
    ],
)
def test_draws_are_fewer_where_sweeps_take_long(n, m, draws):
    X = np.zeros((n, 1), dtype=np.float32)
    X[n // 2 :] = 1
    with pm.Model() as model:
        pmt.BART("mu", X, leaf=pmt.NormalLeaf(0.0, 1.0), m=m, max_nodes=4 * m, n_cuts=2)
        pmt.BART("s", X[:50], leaf=pmt.NormalLeaf(0.0, 1.0), m=2)
    assert lengths(model) == (draws, draws, 4, n, m)


def test_models_without_forests_and_of_soft_trees():
    with pm.Model() as model:
        pm.Normal("x")
    assert lengths(model)[:3] == (1000, 1000, 4)
    assert lengths(soft_model())[3:] == (20, 3)


def test_what_to_ask_of_a_large_table_is_said(monkeypatch, caplog):
    monkeypatch.setattr(lengths_of_chains, "SWEPT", 1)
    monkeypatch.setattr(lengths_of_chains, "FEWEST", 2)
    caplog.set_level(logging.INFO, "pymc.trees")

    def said(**options):
        caplog.clear()
        with bart_model():
            pm.sample(chains=1, cores=1, random_seed=1, **FAST, **options)
        return [r.getMessage() for r in caplog.records if "five sweeps" in r.getMessage()]

    [text] = said(draws=20, tune=20)
    assert "30 rows and 5 trees" in text and "pm.sample(draws=7, tune=7, chains=4)" in text
    assert said(draws=7, tune=7) == []
    assert said(draws=20, tune=20, quiet=True) == []
    with bart_model() as model:
        step = pmt.CGM(model=model)
    caplog.clear()
    pm.sample(20, tune=20, step=step, model=model, chains=1, cores=1, random_seed=1, **FAST)
    assert not any("five sweeps" in r.getMessage() for r in caplog.records)
