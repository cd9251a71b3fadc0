"""Kernels of sums of soft trees against plain Python: weights, marginals, ratios of proposals."""

import numpy as np
import pytest
from scipy import stats
from support.chains.soft_forest import EQUAL, soft_problem
from support.naive import soft_forest as naive

from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.soft_forest import moves
from pymc_trees.core.soft_forest.encode import (
    SoftLayout,
    decode,
    draw_soft_value,
    encode,
    evaluate,
    soft_sizes,
    summarise,
)
from pymc_trees.core.soft_forest.moves import (
    _accept_draft,
    _evaluate_draft,
    open_soft_tree,
    update_gram,
)
from pymc_trees.core.soft_forest.prior import make_soft_prior
from pymc_trees.core.soft_forest.rows import SoftRows, draw_leaf_values, make_soft_work
from pymc_trees.core.soft_forest.sweep import count_trees, soft_sweeps
from pymc_trees.core.soft_forest.trees import TINY, make_unit_map, sum_trees, to_unit

WEIGHTS = np.array([0.3, 0.1, 0.2, 0.25, 0.15])


def drawn(seed, alpha=0.95, beta=0.8, bandwidth=0.1, m=1, n=30, p=2, sd=1.0, max_nodes=300):
    """Forest of a value from the prior, and its rows (p, n)."""
    rng = np.random.default_rng(seed)
    unit = rng.random((p, n))
    split = np.arange(1.0, p + 1)
    prior = make_soft_prior(alpha, beta, split, bandwidth)
    sizes = soft_sizes(SoftLayout(m, max_nodes, n))
    hard = np.zeros(p, dtype=np.bool_)
    value = draw_soft_value(rng, prior, 0.3, sd, sizes, 5.0)
    trees, fits = decode(value, sizes, p)
    assert fits
    problem = soft_problem(unit, m, alpha, beta, bandwidth, split, hard, max_nodes)
    return rng, problem._replace(trees=trees), value, sizes


def tree_of(problem, t=0):
    trees = problem.trees
    size = trees.size[t]
    return naive.nested(trees.column[t, :size], trees.number[t, :size])


def all_of(problem):
    m = len(problem.trees.size)
    return [(tree_of(problem, t), problem.trees.bandwidth[t]) for t in range(m)]


def test_columns_are_mapped_by_their_ranks():
    rows = np.array([[3.0, 7.0, 0.0], [1.0, 7.0, 1.0], [1.0, 7.0, 1.0], [9.0, 7.0, 1.0]])
    X = np.tile(rows, (100, 1))
    unit = to_unit(rows, *make_unit_map(X))
    np.testing.assert_allclose(unit[0], [1.5 / 2.5, 0.0, 0.0, 1.0])
    np.testing.assert_array_equal(unit[1], 0.0)
    np.testing.assert_array_equal(unit[2], [0.0, 1.0, 1.0, 1.0])
    new = np.array([[2.0, 8.0, 0.5], [-5.0, 6.0, 2.0], [99.0, 7.0, -1.0]])
    expected = naive.to_unit(X, new)
    np.testing.assert_allclose(to_unit(new, *make_unit_map(X)).T, expected, atol=1e-15)


def test_as_few_quantiles_are_kept_as_the_rows_allow(rng):
    def columns(n):
        return np.column_stack(
            [rng.lognormal(size=n), np.maximum(rng.normal(size=n), 0.0), rng.random(n)]
        )

    X, new = columns(400), columns(50)
    unit_map = make_unit_map(X)
    few = np.diff(unit_map.offsets)
    assert few[2] == 2  # uniform: shifted and scaled
    assert 2 < few[0] < 40
    for rows in (X, new):
        unit = to_unit(rows, *unit_map)
        np.testing.assert_allclose(unit.T, naive.to_unit(X, rows), atol=1e-12)
        for column, mapped in zip(rows.T, unit):
            assert (np.diff(mapped[np.argsort(column)]) >= 0).all()
    unit = to_unit(X, *unit_map)
    for column, mapped in zip(X.T, unit):
        ranks = stats.rankdata(column) - 0.5
        ranks = (ranks - ranks.min()) / (ranks.max() - ranks.min())
        assert np.abs(mapped - ranks).max() <= 1.36 / 20 + 1e-12


@pytest.mark.parametrize("bandwidth", [0.3, 0.01, 1e-4])
def test_weights_taken_for_0_change_the_function_by_less_than_1e_12(bandwidth):
    """Deep trees, against all weights computed in full."""
    largest, skipped = 0.0, 0
    for seed in range(20):
        _, problem, _, _ = drawn(seed, 0.99, 0.4, bandwidth, m=3, n=200, max_nodes=3000)
        f = sum_trees(problem.trees, problem.unit, problem.hard)
        dense = naive.function(all_of(problem), problem.unit.T)
        largest = max(largest, np.abs(f - dense).max())
        weights = np.array(
            [w for tree, tau in all_of(problem) for w, _ in naive.leaves(tree, tau, problem.unit.T)]
        )
        skipped += ((weights > 0) & (weights < TINY)).sum()
    assert largest < 1e-12
    assert skipped > (0 if bandwidth > 0.1 else 1000)


def test_hard_columns_have_indicators():
    _, problem, _, _ = drawn(3, m=4)
    problem = problem._replace(hard=np.array([True, False]))
    f = sum_trees(problem.trees, problem.unit, problem.hard)
    np.testing.assert_allclose(f, naive.function(all_of(problem), problem.unit.T, {0}), atol=1e-13)
    assert not np.allclose(f, naive.function(all_of(problem), problem.unit.T), atol=1e-3)


@pytest.mark.parametrize("same_precision", [True, False])
def test_log_marginal_is_that_of_the_dense_normal_law(same_precision):
    """But for the constant of the rows about their prior mean; and the draws have its moments."""
    for seed in range(10):
        rng, problem, _, _ = drawn(seed, sd=0.7)
        n = problem.unit.shape[1]
        w = np.full(1, 2.0) if same_precision else rng.gamma(2.0, size=n)
        rows = SoftRows(0.3, 0.7, rng.normal(size=n), w)
        work = open_soft_tree(problem, 0, make_soft_work(300, 2, n))
        found = update_gram(problem, 0, rows, work)
        phi = np.array([v for v, _ in naive.leaves(*all_of(problem)[0], problem.unit.T)]).T
        noise = np.broadcast_to(1 / w, n)
        covariance = 0.7**2 * phi @ phi.T + np.diag(noise)
        dense = stats.multivariate_normal.logpdf(rows.r, np.full(n, 0.3), covariance)
        constant = stats.norm.logpdf(rows.r, 0.3, np.sqrt(noise)).sum()
        assert found == pytest.approx(dense - constant, abs=1e-8)
    values = np.empty((20_000, phi.shape[1]))
    for s in range(len(values)):
        update_gram(problem, 0, rows, work)
        draw_leaf_values(rng, work.current, phi.shape[1], rows, work.values)
        values[s] = work.values[: phi.shape[1]]
    precision = phi.T @ (phi / noise[:, None]) + np.eye(phi.shape[1]) / 0.7**2
    mean = np.linalg.solve(precision, phi.T @ (rows.r / noise) + 0.3 / 0.7**2)
    z = (values.mean(axis=0) - mean) / np.sqrt(np.diag(np.linalg.inv(precision)) / len(values))
    assert np.abs(z).max() < 5
    np.testing.assert_allclose(np.cov(values.T), np.linalg.inv(precision), atol=0.03)


def log_chance(kind, before, after, prior):
    """Log probability or density with which a kind of move proposes a tree, in plain Python."""
    splits, new = naive.splits_of(before), naive.splits_of(after)
    total = WEIGHTS[0] + WEIGHTS[4] if not splits else WEIGHTS.sum()
    log_kind = np.log(WEIGHTS[kind] / total)
    if kind == moves.PRUNE:
        return log_kind - np.log(sum(two for *_, two in splits))
    [(place, j, _, depth, _)] = (
        [one for one in new if one[0] not in {s[0] for s in splits}]
        if kind == moves.GROW
        else [a for a, b in zip(new, splits, strict=True) if a[1:3] != b[1:3]]
    )
    low, high = 0.0, 1.0
    for k in range(len(place)):  # bounds from the splits above
        _, above, cut, *_ = next(s for s in new if s[0] == place[:k])
        if above == j:
            low, high = (low, min(high, cut)) if place[k] == 0 else (max(low, cut), high)
    log_rule = np.log(prior.weights[j] / prior.weights.sum()) - np.log(high - low)
    n = len(splits) + 1 if kind == moves.GROW else len(splits)
    return log_kind - np.log(n) + log_rule


BACK = {moves.GROW: moves.PRUNE, moves.PRUNE: moves.GROW}


@pytest.mark.parametrize("kind", range(4))
def test_ratios_of_proposals_are_those_of_prior_and_densities(kind):
    """``log p(T') q(T | T') - log p(T) q(T' | T)``, each term by itself; so reversal negates it."""
    seen = 0
    for seed in range(60):
        rng, problem, _, _ = drawn(seed)
        trees, prior = problem.trees, problem.prior
        size = trees.size[0]
        if kind != moves.GROW and size == 1:
            continue
        work = open_soft_tree(problem, 0, make_soft_work(300, 2, 30))
        given = (trees.column[0], trees.number[0], size, trees.bandwidth[0], prior, WEIGHTS, work)
        found = moves.propose(rng, kind, *given)
        before = tree_of(problem)
        after = naive.nested(work.column[: found.size], work.number[: found.size])
        shape = [naive.log_shape(t, 0.95, 0.8, prior.weights) for t in (before, after)]
        if not np.isfinite(shape[1]):
            assert found.log_ratio == -np.inf
            continue
        ratio = shape[1] - shape[0]
        if kind != moves.PERTURB:  # whose density is symmetric
            back = BACK.get(kind, kind)
            ratio += log_chance(back, after, before, prior) - log_chance(kind, before, after, prior)
        assert found.log_ratio == pytest.approx(ratio, abs=1e-9)
        seen += 1
    assert seen > 20


def test_ratio_of_a_bandwidth_is_that_of_its_law_on_the_log_scale():
    for seed in range(20):
        rng, problem, _, _ = drawn(seed)
        trees, size = problem.trees, problem.trees.size[0]
        work = open_soft_tree(problem, 0, make_soft_work(300, 2, 30))
        old = trees.bandwidth[0]
        given = (trees.column[0], trees.number[0], size, old, problem.prior, WEIGHTS, work)
        found = moves.propose(rng, moves.BANDWIDTH, *given)
        expected = np.diff(
            [stats.expon.logpdf(t, scale=0.1) + np.log(t) for t in (old, found.bandwidth)]
        )[0]
        assert found.log_ratio == pytest.approx(0.0 if size == 1 else expected, abs=1e-9)


def test_a_draft_is_weighed_and_taken_as_if_the_tree_were_opened_anew():
    for seed in range(40):
        rng, problem, _, _ = drawn(seed)
        trees, n = problem.trees, 30
        rows = SoftRows(0.3, 0.7, rng.normal(size=n), rng.gamma(2.0, size=n))
        work = open_soft_tree(problem, 0, make_soft_work(300, 8, n))
        update_gram(problem, 0, rows, work)
        for _ in range(10):
            size = trees.size[0]
            kind = moves.draw_kind(rng, WEIGHTS, size == 1)
            given = (trees.column[0], trees.number[0], size, trees.bandwidth[0], problem.prior)
            draft = moves.propose(rng, kind, *given, WEIGHTS, work)
            if draft.log_ratio == -np.inf or draft.size == size == 1 or draft.size > 13:
                continue
            found = _evaluate_draft(problem, 0, draft, rows, work)
            _accept_draft(problem, 0, draft, work)
            other = open_soft_tree(problem, 0, make_soft_work(300, 8, n))
            assert found == pytest.approx(update_gram(problem, 0, rows, other), abs=1e-9)
            leaves = (draft.size + 1) // 2
            for name in ("phi", "gram", "rhs"):
                one, two = (getattr(w.current, name)[:leaves] for w in (work, other))
                if name == "gram":
                    one, two = one[:, :leaves], two[:, :leaves]
                np.testing.assert_allclose(one, two, atol=1e-12)


def test_sweeps_keep_the_residual_and_a_value_comes_back():
    rng, problem, value, sizes = drawn(11, m=5)
    trees = problem.trees
    np.testing.assert_array_equal(encode(trees, sizes, 5.0), value)
    y = rng.normal(size=30)
    f = sum_trees(trees, problem.unit, problem.hard)
    leaf = make_normal(0.3, 1.0, y - f, 4.0, 300)
    stop_flag, counts = np.zeros(1, dtype=np.bool_), np.zeros((2, 5), dtype=np.int64)
    assert soft_sweeps(rng, problem, leaf, EQUAL, 3, 20, stop_flag, counts)
    f = sum_trees(trees, problem.unit, problem.hard)
    np.testing.assert_allclose(leaf.r, y - f, atol=1e-10)
    np.testing.assert_allclose(f, naive.function(all_of(problem), problem.unit.T), atol=1e-12)
    inclusion = np.zeros(2, dtype=np.int64)
    splits = [s for tree, _ in all_of(problem) for s in naive.splits_of(tree)]
    assert count_trees(trees, inclusion) == (len(splits) + 5, 1 + max(s[3] for s in splits))
    np.testing.assert_array_equal(inclusion, np.bincount([s[1] for s in splits], minlength=2))
    stop_flag[0] = True
    assert not soft_sweeps(rng, problem, leaf, EQUAL, 3, 20, stop_flag, counts)


def test_a_forest_without_room_ends_the_sweep():
    unit = np.random.default_rng(1).random((1, 20))
    problem = soft_problem(unit, 2, 0.95, 0.1, 0.05, max_nodes=4)
    leaf = make_normal(0.0, 1.0, 20 * np.sin(9 * unit[0]), 100.0, 4)
    stop_flag, counts = np.zeros(1, dtype=np.bool_), np.zeros((2, 5), dtype=np.int64)
    rng = np.random.default_rng(2)
    assert not soft_sweeps(rng, problem, leaf, EQUAL, 3, 1000, stop_flag, counts)
    assert problem.trees.size.sum() <= 4


def test_a_changed_value_is_no_forest():
    _, problem, value, sizes = drawn(12, m=3)
    X = np.ascontiguousarray(problem.unit.T)
    given = (X, *make_unit_map(X), problem.hard, sizes, 5.0)
    assert np.isfinite(evaluate(value, *given)).all()
    value[0, 1] += 1e-9
    assert np.isnan(evaluate(value, *given)).all()
    assert summarise(value, 2, sizes, 5.0)[-1] == -np.inf
    value[0] = 7.0, 0.5  # a column that there is not
    assert not decode(value, sizes, 2)[1]
