"""Weights, the final draw, and ancestors given that child 0 is a copy of particle 0.

Counts are compared by chi-square at p > 1e-5 (some 40 tests: one fails by chance in 2,500 runs
with fresh seeds; seeds are fixed).
"""

import zlib

import numpy as np
import pytest
from numba import njit
from scipy import stats

from pymc_trees.core.random import draw_by_weight
from pymc_trees.core.samplers.particles import (
    CONDITIONAL_SCHEMES,
    draw_ancestors,
    effective_size,
    forced_move,
    log_sum_exp,
    make_particles,
    normalise,
    rearrange,
    resample_given_first,
)
from pymc_trees.core.samplers.particles import SCHEMES as TOP_DOWN_SCHEMES

P = 1e-5
WEIGHTS = {
    "two": [0.3, 0.7],
    "three": [0.1, 0.65, 0.25],
    "heavy": [0.72, 0.05, 0.23],
    "zero": [0.2, 0.0, 0.5, 0.3],
    "four": [0.35, 0.05, 0.42, 0.18],
    "five": [0.11, 0.37, 0.03, 0.33, 0.16],
    "equal": [0.25, 0.25, 0.25, 0.25],
}


@njit
def ancestor_draws(rng, scheme, weights, out):
    for s in range(len(out)):
        resample_given_first(rng, scheme, weights, out[s])


def conditional(rng, scheme, weights, draws):
    out = np.full((draws, len(weights)), -9)
    ancestor_draws(rng, CONDITIONAL_SCHEMES.index(scheme), np.array(weights), out)
    return out


def unconditional(rng, scheme, weights, draws):
    """Plain resampling of particles in random order, then a random cyclic shift of children."""
    n = len(weights)
    order = rng.permuted(np.tile(np.arange(n), (draws, 1)), axis=1)
    shares = np.cumsum(np.asarray(weights)[order], axis=1)
    if scheme == "multinomial":
        points = rng.random((draws, n))
    elif scheme == "systematic":
        points = (rng.random((draws, 1)) + np.arange(n)) / n
    else:
        points = (rng.random((draws, n)) + np.arange(n)) / n
    place = np.minimum((points[:, :, None] >= shares[:, None, :]).sum(axis=2), n - 1)
    ancestors = np.take_along_axis(order, place, axis=1)
    shift = (np.arange(n) + rng.integers(n, size=(draws, 1))) % n
    return np.take_along_axis(ancestors, shift, axis=1)


def offspring(ancestors):
    """Number of children of each particle, as one whole number per draw."""
    n = ancestors.shape[1]
    counts = (ancestors[:, :, None] == np.arange(n)).sum(axis=1)
    return counts, counts @ (n + 1) ** np.arange(n)


def same_law(a, b):
    """P-value of two samples of keys having one law."""
    keys = np.unique(np.concatenate([a, b]))
    table = np.array([[(x == key).sum() for key in keys] for x in (a, b)])
    rare = table.sum(axis=0) < 20
    table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    return 1.0 if table.shape[1] < 2 else stats.chi2_contingency(table, correction=False).pvalue


@pytest.mark.parametrize("scheme", CONDITIONAL_SCHEMES)
@pytest.mark.parametrize("name", WEIGHTS)
def test_the_law_is_the_unconditional_one_given_the_first_ancestor(rng, name, scheme):
    weights = WEIGHTS[name]
    free = unconditional(rng, scheme, weights, 400_000)
    share = (free[:, 0] == 0).mean()  # the shift makes every child's ancestor follow the weights
    assert abs(share - weights[0]) < 5 * np.sqrt(0.25 / 400_000)
    free = free[free[:, 0] == 0]
    drawn = conditional(rng, scheme, weights, 100_000)
    assert (drawn[:, 0] == 0).all()
    assert same_law(offspring(free)[1], offspring(drawn)[1]) > P


@pytest.mark.parametrize("scheme", CONDITIONAL_SCHEMES)
@pytest.mark.parametrize("name", ["three", "four", "five"])
def test_where_the_reference_stands_among_the_particles_does_not_matter(rng, name, scheme):
    """Particles 0 and 1 change places: the law of offspring, weighed back, stays what it is.

    ``P(counts | first ancestor is 0) = P(counts) counts_0 / (C w_0)``, so that ``w_0 / counts_0``
    times the frequency is free of the condition. Without this the kernel is not invariant: the
    particle that is taken becomes the next sweep's particle 0. Differences are within 5 standard
    errors of 400,000 draws, over some 100 vectors of counts.
    """
    weights = np.array(WEIGHTS[name])
    swap = np.arange(len(weights))
    swap[:2] = 1, 0
    draws, found = 400_000, []
    for order in (np.arange(len(weights)), swap):
        counts = offspring(conditional(rng, scheme, weights[order], draws))[0]
        factor = weights[order][0] / counts[:, 0]
        counts = counts[:, order]
        keys = counts @ (len(weights) + 1) ** np.arange(len(weights))
        keys[counts[:, :2].min(axis=1) == 0] = -1  # not possible in one of the two
        values = {}
        for key in np.unique(keys[keys >= 0]):
            each = np.where(keys == key, factor, 0.0)
            values[key] = each.mean(), each.std() / np.sqrt(draws)
        found.append(values)
    a, b = found
    for key in a.keys() | b.keys():
        (x, s), (y, t) = a.get(key, (0.0, 0.0)), b.get(key, (0.0, 0.0))
        assert abs(x - y) < 5 * np.hypot(s, t) + 20 / draws, (key, x, y)


@pytest.mark.parametrize("scheme", CONDITIONAL_SCHEMES)
def test_the_reference_stays_in_the_pool(rng, scheme):
    """Its expected children beyond child 0; every child has a right to it.

    Given the first, n - 1 others expect (n - 1) w_0 children of particle 0 in multinomial draws;
    for systematic ones ``E[n_0^2] / (n w_0)`` in all, and n_0 is floor or ceiling of n w_0. Within
    5 standard errors of 200,000 draws.
    """
    weights = [0.35, 0.05, 0.42, 0.18]
    mine = (conditional(rng, scheme, weights, 200_000)[:, 1:] == 0).sum(axis=1)
    assert mine.max() >= 1
    error = 5 * mine.std() / np.sqrt(len(mine))
    if scheme == "multinomial":
        assert abs(mine.mean() - 3 * 0.35) < error
    if scheme == "systematic":  # n w_0 = 1.4: one child with probability 0.6, two with 0.4
        assert set(np.unique(mine)) == {0, 1}
        assert abs(mine.mean() - ((0.6 * 1 + 0.4 * 4) / 1.4 - 1)) < error
    everything = conditional(rng, scheme, [1.0, 0.0, 0.0], 1000)
    assert (everything == 0).all()


def test_children_keep_the_place_of_their_ancestor_or_take_a_free_one(rng):
    """Every ancestor keeps its number of children, and child 0 is particle 0."""
    n = 6
    for _ in range(300):
        particles = make_particles(n, 5, 3, 1)
        for c in range(n):
            particles.n_nodes[c] = 1 + c % 5
            particles.queue_head[c] = c
            particles.rows[c] = c
            for field in particles[:11]:
                field[c] = c % 2 if field.dtype == bool else c
        particles.log_w[:] = np.arange(n)
        ancestors = rng.integers(n, size=n)
        ancestors[0] = 0
        rearrange(particles, ancestors)
        sources = particles.rows[:, 0].astype(int)
        assert sources[0] == 0 and sorted(sources) == sorted(ancestors)
        assert (particles.rows == sources[:, None]).all()
        np.testing.assert_array_equal(particles.queue_head, sources)
        np.testing.assert_array_equal(particles.n_nodes, 1 + sources % 5)
        for c in range(n):
            for name, field in zip(particles._fields[:11], particles[:11]):
                wanted = sources[c] % 2 if field.dtype == bool else sources[c]
                assert (field[c, : particles.n_nodes[c]] == wanted).all(), name


def test_weights_that_are_far_apart_or_zero():
    log_w = np.array([-1e5, -1e5 + np.log(3.0), -np.inf])
    weights = np.empty(3)
    assert normalise(log_w, weights) == pytest.approx(-1e5 + np.log(4.0))
    np.testing.assert_allclose(weights, [0.25, 0.75, 0.0], rtol=1e-9)
    assert effective_size(weights) == pytest.approx(1.6)
    assert log_sum_exp(np.full(3, -np.inf)) == -np.inf
    assert normalise(np.array([0.0, -2000.0]), weights[:2]) == 0.0
    assert weights[1] == 0.0


def test_points_beyond_the_end_by_rounding_fall_on_the_last_weight_that_is_not_zero():
    weights = np.array([0.5, 0.5 - 1e-12, 0.0])
    n = weights.size
    assert draw_by_weight(weights, 0, n, 1.0 - 1e-16) == 1
    assert draw_by_weight(weights, 0, n, 0.0) == 0


@njit
def final_draws(rng, weights, draws):
    counts = np.zeros(weights.size, dtype=np.int64)
    for _ in range(draws):
        counts[forced_move(rng, weights)] += 1
    return counts


def forced_law(weights):
    """Probabilities of `forced_move` (Liu 1996), in exact arithmetic."""
    w0, out = weights[0], np.zeros(len(weights))
    for k in range(1, len(weights)):
        if weights[k] > 0:
            out[k] = weights[k] / (1 - w0) * min(1.0, (1 - w0) / (1 - weights[k]))
    out[0] = 1.0 - out.sum()
    return out


@pytest.mark.parametrize("name", WEIGHTS)
def test_the_final_draw_follows_its_law_and_leaves_the_weights_invariant(rng, name):
    weights, n = np.array(WEIGHTS[name]), len(WEIGHTS[name])
    draws = 200_000
    wanted = forced_law(weights)
    counts = final_draws(rng, weights, draws)
    kept = wanted > 1e-12  # zero by rounding of the sum it completes
    assert counts[~kept].sum() == 0
    if kept.sum() > 1:
        assert stats.chisquare(counts[kept], draws * wanted[kept]).pvalue > P
    matrix = np.zeros((n, n))
    for i in range(n):  # the reference is particle i: it stands first
        if weights[i] > 0:
            order = np.r_[i, np.delete(np.arange(n), i)]
            matrix[i, order] = forced_law(weights[order])
    np.testing.assert_allclose(weights @ matrix, weights, atol=1e-15)
    assert matrix[0, 0] <= weights[0] + 1e-15  # never stays more often than a draw by weight


def test_a_lone_weight_is_never_left(rng):
    assert final_draws(rng, np.array([1.0, 0.0, 0.0]), 1000)[0] == 1000


@njit(cache=True)
def _count_children(rng, scheme, weights, runs, n_children):
    counts = np.zeros((runs, weights.size))
    ancestors = np.empty(n_children, dtype=np.int64)
    for run in range(runs):
        draw_ancestors(rng, scheme, weights, ancestors)
        for c in ancestors:
            counts[run, c] += 1
    return counts


@pytest.mark.parametrize("n_children", [6, 11])
@pytest.mark.parametrize("scheme", TOP_DOWN_SCHEMES)
def test_children_by_weight(scheme, n_children):
    """Mean number of children C w (20,000 draws: standard error at most 0.012), and its range."""
    weights = np.array([0.0, 0.3, 0.05, 0.4, 0.25, 0.0])
    rng = np.random.default_rng(zlib.crc32(scheme.encode()))
    counts = _count_children(rng, TOP_DOWN_SCHEMES.index(scheme), weights, 20_000, n_children)
    expected = n_children * weights
    se = np.maximum(counts.std(axis=0) / np.sqrt(len(counts)), 1e-9)
    assert np.all(np.abs(counts.mean(axis=0) - expected) < 5 * se)
    assert np.all(counts.sum(axis=1) == n_children)
    if scheme != "multinomial":
        sides = {"residual": (0, np.inf), "systematic": (0, 0), "stratified": (1, 1)}[scheme]
        assert np.all(counts >= np.floor(expected) - sides[0])
        assert np.all(counts <= np.ceil(expected) + sides[1])
