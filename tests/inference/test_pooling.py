"""Which chains share a covariance, and what it is; what a warm-up does with it."""

from copy import deepcopy

import numpy as np
import pytest
from support.soft_models import posterior_of, regression, scaled
from support.soft_quadrature import log_evidence

from pymc_trees.dcc import local
from pymc_trees.dcc.dcc import DCC, Settings
from pymc_trees.dcc.evidence import chain_covariance, pooled_covariances
from pymc_trees.dcc.local import Refit, refit, warm_up
from pymc_trees.dcc.nuts import Run


@pytest.fixture(scope="module")
def data():
    return regression()


@pytest.fixture(scope="module")
def posterior(data):
    return posterior_of(data[0])


def run_of_one_topology(posterior, **settings):
    """A run that knows of `SLL` alone and finds no other."""
    dcc = DCC(posterior, Settings(**settings, threshold=1000), 2)
    dcc.search.proposed, dcc.search.active = {}, ["SLL"]
    return dcc


def test_chains_in_one_mode_share_all_their_draws(rng):
    draws = [rng.normal(size=(n, 3)) for n in (20, 30, 25)]
    expected = chain_covariance(np.concatenate(draws))
    for found in pooled_covariances(draws):
        np.testing.assert_allclose(found, expected)


def test_a_chain_in_another_mode_shares_with_none(rng):
    draws = [rng.normal(size=(50, 2)) * [1.0, 0.1] for _ in range(3)]
    draws[1] = draws[1] + [0.0, 1.0]  # ten standard deviations of one coordinate
    first, other, last = pooled_covariances(draws)
    np.testing.assert_allclose(first, chain_covariance(np.concatenate([draws[0], draws[2]])))
    np.testing.assert_array_equal(first, last)
    np.testing.assert_allclose(other, chain_covariance(draws[1]))


def test_diagonal_ones_have_the_same_variances(rng):
    draws = [rng.normal(size=(20, 3)) for _ in range(2)]
    for full, diagonal in zip(
        pooled_covariances(draws), pooled_covariances(draws, is_full=False), strict=True
    ):
        np.testing.assert_array_equal(diagonal, np.diag(np.diag(full)))


@pytest.mark.parametrize("cost", [1e-3, 1e3])
def test_covariances_are_full_where_draws_by_them_cost_less(posterior, monkeypatch, cost):
    """The first covariances are made as cheap, or dear, as in the example by the run itself."""
    dcc = DCC(posterior, Settings(chains=2, tune=40), 1)
    run, given = dcc.run, []

    def weighed(task, each):
        runs = run(task, each)
        if task is refit:
            given.extend(what.covariance for _, what, _ in each)
            for one in runs:
                one.cost *= cost
        return runs

    monkeypatch.setattr(dcc, "run", weighed)
    dcc.warm_up(["SSLLL"], 40)
    first, last = given[:2], given[2:]
    assert all(np.count_nonzero(c) == c.size for c in first)
    assert all((np.count_nonzero(c) == c.size) == (cost < 1) for c in last)


def test_a_chain_that_stands_still_and_one_without_parameters(rng):
    still, moving = pooled_covariances([np.ones((10, 2)), rng.normal(size=(10, 2))])
    assert np.linalg.eigvalsh(still)[0] > 0 and np.linalg.eigvalsh(moving)[0] > 0
    assert [c.shape for c in pooled_covariances([np.empty((4, 0))] * 2)] == [(0, 0)] * 2


def test_a_warm_up_in_full_leaves_each_chain_a_covariance(posterior):
    dcc = DCC(posterior, Settings(chains=3, tune=60), 1)
    dcc.warm_up(["SLL"], 60)
    found = [chain.nuts.covariance for chain in dcc.topologies["SLL"].chains]
    assert all(c.shape == (4, 4) and np.linalg.eigvalsh(c)[0] > 0 for c in found)


def test_a_chain_that_goes_nowhere_with_a_covariance_keeps_what_it_had(posterior, monkeypatch):
    def stands_still(density, chain, n, **options):
        return Run(chain, np.tile(chain.position, (n, 1)), np.ones(n, dtype=bool), n)

    warm = warm_up(posterior, "SLL", np.random.default_rng(1), 60).chain
    monkeypatch.setattr(local, "run_chain", stands_still)
    after = refit(posterior, "SLL", Refit([1], warm, np.eye(4), is_last=True), 20)
    assert after.chain.nuts.covariance is None and after.chain.warm_ups == warm.warm_ups + 3
    np.testing.assert_array_equal(after.chain.nuts.position, warm.nuts.position)


def test_the_second_visit_comes_after_a_full_warm_up_and_draws_begin_anew(data, posterior):
    _, X, y = data
    dcc = run_of_one_topology(posterior, chains=8, tune=300, local_draws=50)
    dcc.iterate()
    short = dcc.topologies["SLL"]
    spent = sum(chain.gradients for chain in short.chains)
    truth = log_evidence("SLL", scaled(X), y, 0.05)
    # Weights are exact whatever the chains have adapted to: only their error differs.
    assert dcc.evidence("SLL").log_evidence == pytest.approx(truth, abs=0.1)
    assert short.is_screened and short.visits == 1 and short.draws[0].shape == (8, 10, 4)
    dcc.iterate()
    full = dcc.topologies["SLL"]
    assert not full.is_screened and full.visits == 2 and full.draws[0].shape == (8, 50, 4)
    assert sum(chain.gradients for chain in full.chains) > 2 * spent
    assert all(chain.warm_ups >= 2 for chain in full.chains)
    dcc.iterate()
    assert dcc.topologies["SLL"] is full and len(full.draws) == 2 and full.visits == 3
    assert dcc.evidence("SLL").log_evidence == pytest.approx(truth, abs=0.05)


def test_an_interrupt_in_an_estimate_leaves_the_visit_out(posterior, monkeypatch):
    dcc = run_of_one_topology(posterior, chains=2, tune=150, local_draws=10)
    dcc.iterate()
    before = deepcopy(dcc.topologies["SLL"])

    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("pymc_trees.dcc.dcc.estimate_evidence", interrupted)
        dcc.visit("SLL")
    after = dcc.topologies["SLL"]
    assert (after.visits, after.estimate, len(after.draws)) == (1, before.estimate, 1)
    np.testing.assert_array_equal(after.draws[0], before.draws[0])


@pytest.mark.parametrize("what", [local.begin, local.visit])
def test_an_interrupt_at_the_second_visit_keeps_the_first(posterior, monkeypatch, what):
    dcc = run_of_one_topology(posterior, chains=2, tune=150, local_draws=10)
    dcc.iterate()
    [first], run = dcc.topologies["SLL"].draws, dcc.run

    def interrupted(task, each):
        if each and task is what:
            raise KeyboardInterrupt
        return run(task, each)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(dcc, "run", interrupted)
        dcc.iterate()
    [kept] = dcc.topologies["SLL"].draws
    np.testing.assert_array_equal(kept, first)
    assert dcc.combine().labels == ["SLL"] and dcc.topologies["SLL"].visits == 1
    dcc.iterate()
    [anew] = dcc.topologies["SLL"].draws
    assert anew.shape[1] == 10 and dcc.topologies["SLL"].visits == 2
