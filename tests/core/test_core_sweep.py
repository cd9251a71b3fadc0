"""Whole sweeps: reproducible, and a full pool is reported, not hidden."""

import numpy as np
import pytest
from support.chains import CGM, make_setup, run_chain, sweep_on
from support.naive.laws import PROBLEMS
from support.pool import assert_conserved, small, snapshot

from pymc_trees.core.samplers.prior_draw import draw_forest
from pymc_trees.core.value.encode import fit_of


def test_a_sweep_says_when_the_pool_is_full_and_leaves_the_trees_whole(rng):
    problem, m = PROBLEMS["deep"], 3
    for room in (0, 1, 3):
        setup = small(problem, m, room)
        for _ in range(5000):
            before = snapshot(setup.trees)
            try:
                sweep_on(rng, setup.problem, CGM, setup.work)
            except ValueError as error:
                assert str(error) == "full"
                break
            fit = np.empty((problem.n, 1))
            fit_of(setup.leaf, setup.trees, fit)
            assert np.abs(problem.y - setup.leaf.r - fit[:, 0]).max() < 1e-9
        else:
            pytest.fail("the pool was never full")
        assert_conserved(setup.trees)
        assert setup.trees.n_free[0] < 2
        assert len(before) == len(setup.trees)


def test_a_prior_draw_says_when_the_pool_is_full(rng):
    problem = PROBLEMS["deep"]
    full = 0
    for _ in range(200):
        setup = small(problem, 2, 2)
        work = setup.work
        args = (setup.trees, setup.design, setup.prior, setup.leaf)
        full += not draw_forest(rng, *args, work.nodes, work.rows, work.buffer)
        assert_conserved(setup.trees)
    assert 0 < full < 200


@pytest.mark.parametrize("leaf", ["normal", "normal_gamma", "dirichlet"])
def test_same_seed_same_draws_other_seed_other_draws(leaf):
    problem = PROBLEMS["two_columns"]
    a, b, c = (
        run_chain(seed, make_setup(problem, leaf), CGM, 500, keep_fits=True) for seed in (1, 1, 2)
    )
    assert np.array_equal(a.codes, b.codes) and np.array_equal(a.fits, b.fits)
    assert not np.array_equal(a.fits, c.fits)
    assert (a.proposed >= a.accepted).all() and (a.accepted[CGM.weights > 0] > 0).all()
    assert a.proposed.sum() <= 500


def test_nothing_to_split_leaves_a_stump_with_the_right_leaf_law(rng):
    """All rows alike: no move is possible, and the leaf value is redrawn."""
    from dataclasses import replace

    problem = replace(PROBLEMS["gaps"], X=np.ones((6, 2)))
    setup = make_setup(problem, "normal")
    chain = run_chain(3, setup, CGM, 5000, keep_fits=True)
    assert chain.proposed.sum() == 0 and (chain.depths == 0).all()
    mean, variance = problem.normal().moments(range(6))
    values = chain.fits[:, 0, 0]
    assert abs(values.mean() - mean) < 5 * np.sqrt(variance / 5000)
    assert abs(values.var() / variance - 1) < 5 * np.sqrt(2 / 5000)
