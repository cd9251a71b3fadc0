"""Chains that start from a neighbour: where they start, and that only this differs."""

import numpy as np
import pytest
from support.soft_models import classification, posterior_of, regression, scaled
from support.soft_quadrature import log_evidence

from pymc_trees.dcc import local as starts
from pymc_trees.dcc.dcc import DCC, Settings
from pymc_trees.dcc.evidence import estimate_evidence
from pymc_trees.dcc.local import neighbour_start, plan_starts, visit, warm_up
from pymc_trees.dcc.neighbours import prunable


@pytest.fixture(scope="module")
def data():
    return regression()


@pytest.fixture(scope="module")
def posterior(data):
    return posterior_of(data[0])


def prior_states(posterior, label, rng, count=4):
    posterior.set_topology(label)
    return np.stack([posterior.draw_start(rng) for _ in range(count)])


def test_every_other_chain_starts_from_neighbours_that_are_there():
    states = {"SLL": np.zeros((2, 5)), "SSLLL": np.zeros((2, 8)), "L": np.zeros((2, 2))}
    planned = plan_starts("SLSLL", [[k] for k in range(4)], states)
    assert [start.seed for start in planned] == [[0], [1], [2], [3]]
    assert [[label for label, _ in start.donors] for start in planned] == [[], ["SLL"], [], ["SLL"]]
    near = plan_starts("SLL", [[0], [1]], states)[1].donors
    assert [label for label, _ in near] == ["SLL", "L", "SSLLL"]  # itself, once it is known
    assert all(not start.donors for start in plan_starts("SSLLSLL", [[0], [1]], {"L": states["L"]}))


@pytest.mark.full
@pytest.mark.usefixtures("quick_compile")
@pytest.mark.parametrize("make", [regression, classification])
def test_starts_have_a_finite_density_and_grown_ones_a_good_one(make, rng):
    """Also from a larger topology, and from a stump without parameters."""
    posterior = posterior_of(make(p=2)[0])
    for label, other in [("SLL", "L"), ("SSLLL", "SLL"), ("SLL", "SLSLL"), ("SSLLSLL", "SSLLL")]:
        donors = [(other, prior_states(posterior, other, rng))]
        q = neighbour_start(posterior, label, donors, rng)
        posterior.set_topology(label)
        assert q.shape == (posterior.dimension,)
        value, gradient = posterior.density._pytensor_function(q)
        assert np.isfinite(value) and np.isfinite(gradient).all()
        if len(other) < len(label):
            draws = posterior.log_densities(posterior.draw_prior(rng, 50))
            assert value > np.median(draws[:, 0])


def test_what_is_not_of_the_new_split_is_taken_over(posterior, rng, monkeypatch):
    monkeypatch.setattr(starts, "REDRAWN", 0.0)
    states = prior_states(posterior, "SLL", rng, 1)
    q = neighbour_start(posterior, "SLSLL", [("SLL", states)], rng)
    [change] = prunable("SLSLL")
    assert (change.split_index, change.leaf_index) == (1, 1)
    sigma, *_, tau = states[0]  # one input: its weight is no parameter
    assert (q[0], q[4]) == (sigma, tau)


def test_pruning_keeps_the_other_split(posterior, rng, monkeypatch):
    monkeypatch.setattr(starts, "REDRAWN", 0.0)
    good = warm_up(posterior, "SLSLL", np.random.default_rng(2), 150).chain.nuts.position
    q = neighbour_start(posterior, "SLL", [("SLSLL", good[None])], rng)
    assert (q[0], q[3]) == (good[0], good[4])


def test_leaf_values_are_the_best_given_the_gates(posterior, rng):
    """Zero gradient: the density of a normal model is quadratic in them."""
    [state] = prior_states(posterior, "SSLLL", rng, 1)
    places = np.array([1, 2, 3])
    q, value = starts._newton_step(posterior, state, places)
    again, gradient = posterior.density._pytensor_function(q)
    assert value == again > posterior.density._pytensor_function(state)[0]
    np.testing.assert_allclose(gradient[places], 0.0, atol=1e-4)
    np.testing.assert_array_equal(np.delete(q, places), np.delete(state, places))


def test_another_gate_may_be_drawn_afresh(posterior, rng):
    states = prior_states(posterior, "SLL", rng, 1)
    donors = [("SLL", states)]
    taus = {neighbour_start(posterior, "SLSLL", donors, rng)[4] for _ in range(10)}
    assert len(taus - {states[0, 3]}) > 0


def test_same_seed_same_start(posterior, rng):
    donors = [("SLL", prior_states(posterior, "SLL", rng))]
    a, b, c = (
        neighbour_start(posterior, "SSLLL", donors, np.random.default_rng(seed))
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


def test_no_finite_start_leaves_the_chain_to_the_prior(posterior):
    nowhere = [("SLL", np.full((1, 4), np.nan))]
    assert neighbour_start(posterior, "SSLLL", nowhere, np.random.default_rng(1)) is None
    chain = warm_up(posterior, "SSLLL", np.random.default_rng(1), 40, nowhere).chain
    assert np.isfinite(chain.nuts.position).all()


@pytest.mark.full
def test_chains_from_a_neighbour_sample_the_same_posterior(data, posterior):
    """Evidence against quadrature, and means against chains from the prior, long warmed up."""
    _, X, y = data
    rng = np.random.default_rng(3)
    donors = [("L", prior_states(posterior, "L", rng))]
    draws = {}
    for name, near in (("near", donors), ("prior", [])):
        rngs = [np.random.default_rng([3, k]) for k in range(4)]
        warm = [warm_up(posterior, "SLL", rng, 200, near).chain for rng in rngs]
        draws[name] = np.stack([visit(posterior, "SLL", chain, 300).draws for chain in warm])
    posterior.set_topology("SLL")
    evidence = estimate_evidence(
        rng, draws["near"], posterior.log_densities, posterior.draw_prior, 10
    )
    truth = log_evidence("SLL", scaled(X), y, 0.05)
    assert evidence.log_evidence == pytest.approx(truth, abs=0.05)
    # 1,200 draws each with an effective size of several hundred: 0.25 is 4 standard errors.
    near, prior = (d.reshape(-1, 4) for d in (draws["near"], draws["prior"]))
    np.testing.assert_allclose(
        (near.mean(axis=0) - prior.mean(axis=0)) / prior.std(axis=0), 0.0, atol=0.25
    )


def test_small_topologies_are_warmed_up_first_and_given_to_larger_ones(posterior):
    dcc = DCC(posterior, Settings(chains=2, tune=20, local_draws=5, threshold=1000), 1)
    dcc.search.active = []
    dcc.search.proposed = dict.fromkeys(("SSLLL", "SLL", "SLSLL"), 1001)
    levels, run = [], dcc.run

    def watched(task, each):
        if task is starts.begin:
            levels.append(each)
        return run(task, each)

    dcc.run = watched
    dcc.iterate()
    assert [{label for label, *_ in each} for each in levels[:2]] == [
        {"SLL"},
        {"SSLLL", "SLSLL"},
    ]
    assert not any(start.donors for _, start, _ in levels[0])
    for (_, start, _), near in zip(levels[1], [False, True] * 2, strict=True):
        assert bool(start.donors) == near
        for label, states in start.donors:
            assert label == "SLL" and states.shape == (2, 4)
