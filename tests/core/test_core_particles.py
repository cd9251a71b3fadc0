"""Growing particles: the reference's replay, weights, proposals, waiting, planting, full pools."""

import numpy as np
import pytest
from support.chains import CGM, make_setup, make_tools, run_chain, run_particles, weights_of
from support.check_trees import check_trees
from support.naive.laws import PROBLEMS
from support.pool import assert_conserved, small
from support.tiers import tiers

from pymc_trees.core.histograms.cache import fill_root
from pymc_trees.core.histograms.contract import pack_rows
from pymc_trees.core.leaves.contract import add_rows, log_marginal
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.samplers import particle_gibbs as smc
from pymc_trees.core.samplers.growth import FULL, grow_particle, is_incomplete
from pymc_trees.core.samplers.optimal import candidate_columns, draw_candidates
from pymc_trees.core.samplers.particle_gibbs import Batch, particle_sweep
from pymc_trees.core.samplers.particles import start_particle, write_tree

OPTIONS = [("prior", 1.0, 100), ("empirical", 1.0, 100), ("optimal", 1.0, 100)]
OPTIONS += [("optimal", 0.5, 100), ("optimal", 1.0, 2)]


def start(name, proposal, share=1.0, n_bins=100, particles=4, sweeps=20, seed=1):
    """A setup with a grown tree in an open residual, tools, and the statistics of all rows."""
    setup = make_setup(PROBLEMS[name], "normal")
    setup = setup._replace(
        design=setup.design._replace(columns=setup.design.columns.astype(np.float64))
    )
    run_chain(seed, setup, CGM, sweeps)
    tools = make_tools(setup, particles, proposal, "multinomial", share, n_bins)
    nodes = breadth_first(setup.trees)
    setup.work.nodes[: len(nodes)] = nodes
    setup.leaf.r[:] += setup.trees.values[setup.trees.leaf_of[0], 0]  # the tree taken out
    n = PROBLEMS[name].n
    root = np.empty(2)
    rows_stats(setup.leaf, np.arange(n, dtype=np.uint32), root)
    return setup, tools, nodes, root


def rows_stats(leaf, rows, out):
    add_rows(leaf, rows, 0, len(rows), out)


def breadth_first(trees):
    order = [int(trees.roots[0])]
    for node in order:
        if trees.column[node] >= 0:
            order += [int(trees.left[node]), int(trees.right[node])]
    return order


def marginal(leaf, rows):
    out = np.empty(2)
    rows_stats(leaf, np.asarray(rows, dtype=np.uint32), out)
    return log_marginal(leaf, out)


def grow(rng, setup, tools, c, replay, prior=None):
    problem = setup.problem._replace(prior=prior or setup.prior)
    return grow_particle(rng, problem, tools.growth, c, replay)


def begin(setup, tools, c, root):
    start_particle(tools.particles, c, False, root, log_marginal(setup.leaf, root))
    tools.particles.reference[0] = setup.trees.roots[0]
    look = tools.growth.look_ahead
    look.root[0] = np.nan
    rows = tools.particles.rows[c]
    fill_root(look.histograms, tools.growth.bins, setup.leaf, candidate_columns(look), rows)


def log_prior(name, setup, column, cut, rows, depth):
    """Log prior of an outcome at a node, by the definition."""
    problem = PROBLEMS[name]
    p_split = problem.prior["alpha"] * (1 + depth) ** -problem.prior["beta"]
    if column < 0:
        return np.log1p(-p_split)
    cells = setup.design.columns[:, rows]
    spans = cells.max(axis=1) - cells.min(axis=1)
    weights = weights_of(problem, len(cells))
    share = weights[column] / weights[spans > 0].sum()
    return np.log(p_split * share / spans[column])


def log_proposal(name, setup, column, cut, rows, depth, kind):
    """Log probability under "prior", "empirical", or "optimal" with every value an edge."""
    prior = log_prior(name, setup, column, cut, rows, depth)
    cells = setup.design.columns[:, rows]
    weights, m = weights_of(PROBLEMS[name], len(cells)), marginal(setup.leaf, rows)
    if kind == "prior" or (kind == "empirical" and column < 0):
        return prior
    values = [np.unique(x) for x in cells]
    leaf = setup.leaf
    if kind == "optimal" and np.var(leaf.r[rows]) > 1 / leaf.w[0]:
        leaf = leaf._replace(w=np.array([1 / np.var(leaf.r[rows])]))
        m = marginal(leaf, rows)
    if kind == "empirical":
        v = values[column]
        at = np.searchsorted(v, cut, side="right")
        span = np.log(v[-1] - v[0])
        return prior + span - np.log((len(v) - 1) * (v[at] - v[at - 1]))
    p_split = np.exp(log_prior(name, setup, -1, 0, rows, depth))
    total, found = p_split, p_split
    spread = weights[[len(v) > 1 for v in values]].sum()
    for j, v in enumerate(values):
        for a, b in zip(v, v[1:]):
            share = (1 - p_split) * weights[j] / spread * (b - a) / (v[-1] - v[0])
            left = cells[j] <= a
            gain = marginal(leaf, rows[left]) + marginal(leaf, rows[~left]) - m
            total += share * np.exp(gain)
            if j == column and a <= cut < b:
                found = share * np.exp(gain) / (b - a)
    return np.log(found / total)


@pytest.mark.parametrize("proposal", ["prior", "empirical", "optimal"])
@pytest.mark.parametrize("name", tiers(["deep", "three_columns", "grid"], quick=["deep"]))
def test_replay_repeats_the_reference_and_weighs_target_over_proposal(rng, name, proposal):
    """Nodes, cuts and rows in breadth-first order; factors by independent code.

    To 1e-9, and to 1e-6 for the optimal proposal, whose exponentials are polynomials.
    """
    tolerance = 1e-6 if proposal == "optimal" else 1e-9
    splits = 0
    for seed in range(15):
        setup, tools, nodes, root = start(name, proposal, seed=seed)
        trees, particles = setup.trees, tools.particles
        begin(setup, tools, 0, root)
        while is_incomplete(particles, 0):
            k, before = particles.queue_head[0], particles.log_w[0]
            rows = np.sort(particles.rows[0, particles.start[0, k] : particles.stop[0, k]])
            assert grow(rng, setup, tools, 0, True) == 0
            node, depth = nodes[k], particles.depth[0, k]
            column, cut = trees.column[node], trees.cut[node]
            factor = log_prior(name, setup, column, cut, rows, depth)
            factor -= log_proposal(name, setup, column, cut, rows, depth, proposal)
            if column >= 0:
                left = setup.design.columns[column, rows] <= cut
                factor -= marginal(setup.leaf, rows)
                factor += marginal(setup.leaf, rows[left]) + marginal(setup.leaf, rows[~left])
            assert particles.log_w[0] - before == pytest.approx(factor, abs=tolerance)
        assert particles.n_nodes[0] == len(nodes)
        np.testing.assert_array_equal(particles.reference[: len(nodes)], nodes)
        for k, node in enumerate(nodes):
            assert particles.column[0, k] == trees.column[node]
            assert particles.depth[0, k] == trees.depth[node]
            rows = particles.rows[0, particles.start[0, k] : particles.stop[0, k]]
            if trees.column[node] < 0:
                assert set(rows) == set(np.flatnonzero(trees.leaf_of[0] == node))
            else:
                splits += 1
                assert particles.cut[0, k] == trees.cut[node]
                assert particles.log_cut[0, k] == pytest.approx(trees.log_cut[node])
                assert particles.log_column[0, k] == pytest.approx(trees.log_column[node])
    assert splits > 20


@pytest.mark.parametrize("proposal, share, n_bins", OPTIONS)
@pytest.mark.parametrize("name", tiers(["deep", "three_columns", "grid"], quick=["three_columns"]))
def test_a_planted_draw_replayed_has_the_weight_it_was_drawn_with(
    rng, name, proposal, share, n_bins
):
    """So log q of a draw is log q of its replay, when the same columns are looked at."""
    for seed in range(30):
        setup, tools, nodes, root = start(name, proposal, share, n_bins, seed=seed)
        particles, work = tools.particles, setup.work
        draw_candidates(rng, tools.growth.look_ahead, setup.design, setup.trees, 0, work.nodes)
        begin(setup, tools, 1, root)
        while is_incomplete(particles, 1):
            assert grow(rng, setup, tools, 1, False) == 0
        if particles.log_w[1] == -np.inf:
            assert n_bins == 2  # a cut that parts nothing
            continue
        assert write_tree(setup.trees, 0, particles, 1, work.stats, work.nodes)
        assert_conserved(setup.trees)
        size = particles.n_nodes[1]
        for k, node in enumerate(breadth_first(setup.trees)):
            rows = particles.rows[1, particles.start[1, k] : particles.stop[1, k]]
            assert setup.trees.count[node] == len(rows)
            np.testing.assert_allclose(work.stats[node], particles.stats[1, k])
            if setup.trees.column[node] < 0:
                assert set(rows) == set(np.flatnonzero(setup.trees.leaf_of[0] == node))
        begin(setup, tools, 0, root)
        while is_incomplete(particles, 0):
            assert grow(rng, setup, tools, 0, True) == 0
        assert particles.n_nodes[0] == size
        assert particles.log_w[0] == pytest.approx(particles.log_w[1], abs=1e-9)


@pytest.mark.parametrize("proposal", ["prior", "optimal"])
def test_waiting_and_weights_of_a_whole_run(rng, monkeypatch, proposal):
    """Finished particles keep tree and weight; every weight is W / C after resampling.

    Runs the uncompiled loop with spies on its parts: weights are followed factor by factor.
    """
    setup, tools, _, root = start("deep", proposal, particles=6, sweeps=60)
    particles, followed, seen = tools.particles, np.zeros(6), {"resampled": 0, "waited": 0}

    def spy_grow(*args):
        c, replay = args[-2:]
        assert replay == (c == 0)
        assert particles.queue_head[c] < particles.n_nodes[c]
        before = particles.log_w.copy()
        np.testing.assert_allclose(before, followed, atol=1e-9)
        status = grow_particle(*args)
        others = np.arange(6) != c
        np.testing.assert_array_equal(before[others], particles.log_w[others])
        seen["waited"] += (particles.queue_head[others] == particles.n_nodes[others]).any()
        followed[c] = particles.log_w[c]
        return status

    def spy_resample(rng, scheme, weights, ancestors):
        w = np.exp(particles.log_w - particles.log_w.max())
        np.testing.assert_allclose(weights, w / w.sum())
        assert 1 / (weights**2).sum() < 3
        followed[:] = np.log(np.exp(particles.log_w).mean())
        seen["resampled"] += 1
        real(rng, scheme, weights, ancestors)
        assert ancestors[0] == 0

    real = smc.resample_given_first
    monkeypatch.setattr(smc, "grow_particle", spy_grow)
    monkeypatch.setattr(smc, "resample_given_first", spy_resample)
    for _ in range(60):
        followed[:] = 0.0
        status = smc.grow_particles.py_func(
            rng, setup.problem, 0, tools.growth, tools.scheme, root, setup.work.nodes
        )
        assert status == 0
        chosen, ess = smc.draw_particle.py_func(rng, particles.log_w)
        assert 0 <= chosen < 6 and 1 - 1e-9 <= ess <= 6 + 1e-9
        assert np.isfinite(particles.log_w[chosen])
        assert (particles.queue_head == particles.n_nodes).all()
    assert seen["resampled"] > 3 and seen["waited"] > 5


def narrower(particles, width):
    """Room for fewer nodes."""
    cut = {name: getattr(particles, name)[:, :width].copy() for name in particles._fields[:11]}
    return particles._replace(**cut)


def test_a_full_pool_or_too_few_places_is_reported_and_nothing_is_lost(rng):
    problem = PROBLEMS["deep"]
    for room in (0, 1, 3):
        setup = small(problem, 3, room)
        for width in (1 + 2 * room, 15):
            tools = make_tools(setup, 4, "prior", "multinomial")
            growth = tools.growth._replace(particles=narrower(tools.particles, width))
            full = False
            for _ in range(300):
                full = not particle_sweep(
                    rng, setup.problem, setup.problem, None, growth, tools.scheme, setup.work,
                    Batch(0, 3, False), np.zeros(2),
                )  # fmt: skip
                assert_conserved(setup.trees)
                if full:
                    break
            assert full
            setup = small(problem, 3, room)
    assert FULL < 0


def test_in_tuning_a_tree_without_room_stays(rng):
    for room in (0, 1, 3):
        setup = small(PROBLEMS["deep"], 3, room)
        tools = make_tools(setup, 4, "prior", "multinomial")
        for width in (1 + 2 * room, 15):
            growth = tools.growth._replace(particles=narrower(tools.particles, width))
            for _ in range(300):
                assert particle_sweep(
                    rng, setup.problem, setup.problem, None, growth, tools.scheme, setup.work,
                    Batch(0, 3, True), np.zeros(2),
                )  # fmt: skip
                assert_conserved(setup.trees)
            assert not check_trees(setup.trees, setup.design)


def test_same_seed_same_draws():
    runs = []
    for seed in (1, 1, 2):
        setup = make_setup(PROBLEMS["deep"], "dirichlet")
        tools = make_tools(setup, 5, "optimal", "systematic", 0.5)
        runs.append(run_particles(seed, setup, tools, 200, True))
    a, b, c = runs
    assert np.array_equal(a.fits, b.fits) and not np.array_equal(a.fits, c.fits)
    assert 0 < a.accepted[0] <= 200 and 200 <= a.accepted[1] <= 1000


@pytest.mark.parametrize("rows", [2, 6, 7, 48])
def test_rows_that_are_all_alike_fit_their_cells(rows):
    """Equal rows fill a cell to the brim: its count must not catch what rounding spills."""
    for value in (2.0, -1.1, 1.0 / 3.0):
        leaf = make_normal(0.0, 1.0, np.full(rows, value), np.full(rows, 3.9999887677908124), 1)
        packed, unit = np.zeros((2, rows), dtype=np.int64), np.ones(3)
        pack_rows(leaf, packed, unit)
        total = int(packed[0].sum())
        shift = int(unit[2])
        count = (total + (1 << (shift - 1))) >> shift
        assert count == rows
        assert (total - (count << shift)) * unit[0] == pytest.approx(rows * leaf.w[0] * value)
