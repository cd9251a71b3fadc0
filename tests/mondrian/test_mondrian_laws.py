"""Mondrian trees have their exact law, from a batch and one row at a time in any order.

Hierarchies: chi-square against the law by enumeration, at p > 1e-5 in some 40 tests, 8,000 trees
each. That finds a difference of 0.03 in a single probability with power above 0.99: its z-score is
0.03 / sqrt(0.25 / 8000) = 5.4 at least. Alg. 6.4 as printed differs by 0.2 and more. Times:
Kolmogorov-Smirnov at p > 1e-5; 20,000 numbers find a distance of 0.025 as surely.
"""

import numpy as np
import pytest
from numba.typed import List
from scipy import stats
from support.mondrian_twin import (
    NEVER,
    budget_law,
    check_tree,
    code_of,
    grow,
    hierarchy_law,
    lifetime_law,
    live,
    make,
    rules,
    stream,
)
from support.tiers import tiers

from pymc_trees.mondrian.kernels.extend import extend_forest, extend_tree
from pymc_trees.mondrian.kernels.grow import grow_tree
from pymc_trees.mondrian.kernels.tree import USED

P = 1e-5
TREES = 8000
X = np.array([[0.0, 0.3], [0.9, 0.0], [0.35, 1.0], [0.4, 0.2], [1.3, 0.7]])
Y = {
    "numbers": np.array([0.1, 0.5, -1.0, 2.0, 0.7]),
    "classes": np.array([0, 1, 0, 0, 1]),
}
ORDERS = [(0, 1, 2, 3, 4), (4, 2, 0, 3, 1), (3, 0, 2, 1, 4)]
SUBSETS = [(0, 1, 2), (1, 3, 4), (0, 2, 3, 4)]


def rule_of(kind, min_samples_split, **settings):
    return rules(min_samples_split, pause_pure=kind == "classes", **settings)


def agree(codes, law):
    """P-value of codes under a law; outcomes expected less than five times are pooled."""
    codes, counts = np.unique(codes, return_counts=True)
    assert set(codes.tolist()) <= set(law)
    expected = np.array([len_ * p for p in law.values() for len_ in [counts.sum()]])
    seen = dict(zip(codes.tolist(), counts.tolist()))
    observed = np.array([seen.get(code, 0) for code in law])
    rare = expected < 5
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    keep = expected > 0
    if keep.sum() == 1:
        return 1.0
    return stats.chisquare(observed[keep], expected[keep], sum_check=False).pvalue


def simulate(rng, trees, kind, rule, order=None, lifetime=np.inf, start=0, subset=None):
    """Codes of trees from a batch, or from a stream in some order."""
    order = np.arange(len(X)) if order is None else np.array(order)
    data, y = X[order], Y[kind][order]
    names = (
        order
        if subset is None
        else np.array([subset.index(i) if i in subset else -1 for i in order])
    )
    codes = np.empty(trees, dtype=np.int64)
    for t in range(trees):
        if start == len(X):
            tree, _ = grow(rng, data, y, rule, lifetime)
        else:
            tree, _ = stream(rng, data, y, rule, lifetime, start)
        codes[t] = code_of(tree, data, names)
        if t < 20:
            check_tree(tree, data, y, rule)
    return codes


@pytest.mark.parametrize("min_samples_split", tiers([2, 3, 4], quick=[3]))
@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_batch_has_the_exact_law(rng, kind, min_samples_split):
    rule = rule_of(kind, min_samples_split)
    law = hierarchy_law(X, Y[kind], rule)
    assert sum(law.values()) == pytest.approx(1)
    assert agree(simulate(rng, TREES, kind, rule, start=5), law) > P


@pytest.mark.parametrize("order", tiers(ORDERS, quick=ORDERS[1:2], single=True))
@pytest.mark.parametrize("min_samples_split", tiers([2, 3, 4], quick=[3]))
@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_online_has_the_law_of_the_batch(rng, kind, min_samples_split, order):
    rule = rule_of(kind, min_samples_split)
    law = hierarchy_law(X, Y[kind], rule)
    assert agree(simulate(rng, TREES, kind, rule, order), law) > P


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_a_batch_extended_has_the_law_of_the_whole(rng, kind):
    rule = rule_of(kind, 3)
    codes = simulate(rng, TREES, kind, rule, ORDERS[1], start=3)
    assert agree(codes, hierarchy_law(X, Y[kind], rule)) > P


@pytest.mark.parametrize("start", tiers([0, 5], quick=[0]))
@pytest.mark.parametrize("lifetime", tiers([0.3, 1.0], quick=[1.0]))
@pytest.mark.parametrize("kind", tiers(["numbers", "classes"], quick=["classes"]))
def test_a_finite_lifetime(rng, kind, lifetime, start):
    rule = rule_of(kind, 3)
    law = lifetime_law(X, Y[kind], rule, lifetime)
    assert sum(law.values()) == pytest.approx(1, abs=1e-6)
    codes = simulate(rng, TREES, kind, rule, ORDERS[1], lifetime=lifetime, start=start)
    assert agree(codes, law) > P


@pytest.mark.parametrize("max_leaves", tiers([1, 2, 3, 4], quick=[3]))
@pytest.mark.parametrize("start", tiers([0, 5], quick=[0]))
@pytest.mark.parametrize("kind", tiers(["numbers", "classes"], quick=["classes"]))
def test_a_budget_keeps_the_first_splits_in_time(rng, kind, start, max_leaves):
    rule = rule_of(kind, 2, max_leaves=max_leaves)
    law = budget_law(X, Y[kind], rule)
    codes = simulate(rng, TREES // 2, kind, rule, ORDERS[2], start=start)
    assert agree(codes, law) > P


@pytest.mark.full
def test_a_budget_ends_the_lifetime_at_the_first_split_too_many(rng):
    """From a batch exactly; from a stream in law, KS of 2,000 times each at p > 1e-5."""
    y, most = Y["numbers"], 3
    times = []
    for seed in range(2000):
        whole, _ = grow(np.random.default_rng(seed), X, y, rules(2))
        tree, _ = grow(np.random.default_rng(seed), X, y, rules(2, max_leaves=most))
        assert tree.lifetime[0] == np.sort([whole.time[j] for j in live(whole)])[most - 1]
        times.append(tree.lifetime[0])
    order = np.array(ORDERS[1])
    streamed = [
        stream(rng, X[order], y[order], rules(2, max_leaves=most))[0].lifetime[0]
        for _ in range(2000)
    ]
    assert stats.ks_2samp(times, streamed).pvalue > P


@pytest.mark.parametrize("subset", tiers(SUBSETS, quick=SUBSETS[2:], single=True))
def test_a_tree_restricted_to_some_rows_has_their_law(rng, subset):
    rule = rules(2)
    codes = simulate(rng, TREES, "numbers", rule, start=5, subset=list(subset))
    rows = list(subset)
    assert agree(codes, hierarchy_law(X[rows], Y["numbers"][rows], rule)) > P


def test_a_long_block_is_split_as_one_of_the_rows_it_keeps(rng):
    """Of the five rows of a pure leaf, asked when the last of them comes, it keeps three."""
    y, kept = np.array([0, 0, 0, 0, 1]), [1, 3, 4]
    rule = rules(2, pause_pure=True, max_block=3)
    names = np.array([-1, 0, -1, 1, 2])
    codes = [code_of(stream(rng, X, y, rule)[0], X, names) for _ in range(TREES)]
    assert agree(np.array(codes), hierarchy_law(X[kept], y[kept], rules(2, pause_pure=True))) > P


@pytest.mark.parametrize("online", tiers([False, True], quick=[True]))
def test_times_columns_and_cuts(rng, online):
    many = rng.normal(size=(40, 3)) * [1.0, 3.0, 0.2]
    y = rng.normal(size=40)
    ages, places, roots, sides = [], [], [], []
    for _ in range(500):
        tree, _ = (stream if online else grow)(rng, many, y, rules(2))
        for j in live(tree):
            if tree.column[j] < 0:
                continue
            low, high = tree.box[j]
            start = 0.0 if tree.parent[j] < 0 else tree.time[tree.parent[j]]
            ages.append((tree.time[j] - start) * (high - low).sum())
            d = tree.column[j]
            places.append((tree.cut[j] - low[d]) / (high - low)[d])
            sides.append((d, (high - low) / (high - low).sum()))
        root = tree.state[0]
        roots.append((tree.time[root], tree.column[root]))
    assert len(ages) == 500 * 39
    assert stats.kstest(ages, "expon").pvalue > P
    assert stats.kstest(places, "uniform").pvalue > P
    # the column of each split against its own probabilities: martingale z-scores
    chosen = np.array([d for d, _ in sides])
    shares = np.array([p for _, p in sides])
    for d in range(3):
        z = ((chosen == d) - shares[:, d]).sum() / np.sqrt(
            (shares[:, d] * (1 - shares[:, d])).sum()
        )
        assert abs(z) < 4.5
    extent = np.ptp(many, axis=0)
    assert stats.kstest([t * extent.sum() for t, _ in roots], "expon").pvalue > P
    counts = np.bincount([d for _, d in roots], minlength=3)
    assert stats.chisquare(counts, 500 * extent / extent.sum()).pvalue > P


def test_duplicates_and_constant_columns(rng):
    many = np.column_stack([rng.integers(0, 3, 60), np.ones(60)]).astype(float)
    for y in (rng.integers(0, 2, 60), rng.normal(size=60)):
        for online in (False, True):
            rule = rules(3, pause_pure=y.dtype.kind == "i")
            tree, _ = (stream if online else grow)(rng, many, y, rule)
            check_tree(tree, many, y, rule)
            assert tree.state[3] == 3  # one leaf for each distinct row


@pytest.mark.parametrize("kind", ["numbers", "classes"])
@pytest.mark.parametrize("settings", [{}, {"min_samples_split": 7}, {"max_leaves": 12}])
def test_large_trees_are_sound(rng, kind, settings):
    many = rng.normal(size=(300, 4))
    y = rng.normal(size=300) if kind == "numbers" else rng.integers(0, 4, 300)
    rule = rules(**settings, pause_pure=kind == "classes")
    for lifetime in (np.inf, 0.8):
        for start in (0, 150, 300):
            tree, _ = stream(rng, many, y, rule, lifetime, start)
            check_tree(tree, many, y, rule)


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_one_call_extends_all_trees_of_a_list(rng, kind):
    """The same trees, bit for bit, as one after another with the same generator."""
    data, rule = rng.normal(size=(80, 3)), rule_of(kind, 3)
    y = rng.normal(size=80) if kind == "numbers" else rng.integers(0, 2, 80)
    one_by_one = [grow_tree(rng, *make(data, y), rule, data, y, 5, NEVER) for _ in range(4)]
    together = List([tuple(part._replace(**_copies(part)) for part in t) for t in one_by_one])
    first, second = np.random.default_rng(1), np.random.default_rng(1)
    moved = np.zeros(4, dtype=bool)
    for row in range(5, 80):
        for t, tree in enumerate(one_by_one):
            one_by_one[t] = extend_tree(first, *tree, rule, data, y, row, row + 1)
        extend_forest(second, together, rule, data, y, row, row + 1, moved)
    assert moved.all()
    for tree, other in zip(one_by_one, together):
        for part, same in zip(tree, other):
            for array, copy in zip(part, same):
                used = tree[0].state[USED]
                np.testing.assert_array_equal(array[:used], copy[:used])


def _copies(part):
    return {name: getattr(part, name).copy() for name in part._fields}
