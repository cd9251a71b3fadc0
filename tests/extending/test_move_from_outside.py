"""A move that is no part of the package: exact, found by name. Tolerances: `support.laws.exact`."""

import numpy as np
import pymc as pm
import pytest
from support.chains import make_setup, run_chain
from support.laws.exact import compare
from support.naive.laws import EVERY

import pymc_trees as pmt
from extending.recut import Recut
from pymc_trees.core.moves.catalogue import MOVES
from pymc_trees.core.moves.contract import make_weighted_moves

# Mostly the new move, so that an error in it cannot hide behind grow and prune.
WITH_RECUT = make_weighted_moves((*MOVES, Recut()), np.array([0.2, 0.2, 0.0, 0.0, 0.6]))


@pytest.mark.full
@pytest.mark.parametrize("name", ["gaps"])
def test_it_leaves_the_listed_posterior_invariant(name):
    chain = run_chain(3, make_setup(EVERY[name], "normal"), WITH_RECUT, 120_000, keep_fits=True)
    assert chain.accepted[4] > 10_000
    compare(chain, name, "normal")


@pytest.mark.full
def test_a_step_takes_it_by_its_name():
    X = np.linspace(0.0, 1.0, 30).reshape(-1, 1)
    y = (X[:, 0] > 0.4) + 0.1 * np.random.default_rng(1).normal(size=30)
    with pm.Model():
        mu = pmt.BART("mu", X, y, m=3)
        pm.Normal("y", mu, 0.1, observed=y, shape=mu.shape)
        step = pmt.CGM(moves={"grow": 0.3, "prune": 0.3, "recut": 0.4})
        idata = pm.sample(
            30, tune=10, chains=1, step=step, progressbar=False, compute_convergence_checks=False
        )
    assert idata.sample_stats["accept_recut"].sum() > 0
