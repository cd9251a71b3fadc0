"""Rows kept as bits against lists of rows: the same answers, on every kind of column."""

import numpy as np
import pytest
from support.chains import design_of
from support.naive.laws import EVERY
from support.tiers import tiers

from pymc_trees.core.columns.cells import MAX_CUT as EVERY_CELL
from pymc_trees.core.columns.cells import MISSING
from pymc_trees.core.columns.design import (
    any_column_varies,
    column_range,
    column_varies,
    make_design,
    partition_rows,
)
from pymc_trees.core.columns.row_set import (
    RowSet,
    any_varies_in_set,
    count_rows,
    left_rows,
    list_rows,
    make_row_index,
    range_in_set,
    remove_rows,
    varies_in_set,
    words_of,
)
from pymc_trees.core.columns.rules import draw_rule, draw_set_rule, log_rule, log_set_rule
from pymc_trees.core.columns.steps import equivalent_cuts, is_equivalent, log_equivalent
from pymc_trees.core.leaves.contract import add_rows, add_set, renew_set, renew_sets
from pymc_trees.core.leaves.normal import make_normal, sum_over_set
from pymc_trees.core.moves.problem import make_workspace
from pymc_trees.core.priors.cgm import make_prior
from pymc_trees.core.priors.contract import draw_column, draw_set_column, log_column, log_set_column


def tables(rng):
    """Designs of many rows: several words, the last one not full, and steps of the index."""
    n = 333
    numbers = np.column_stack([rng.random(n), rng.integers(0, 4, n), rng.normal(size=n).round(1)])
    levels, gaps = rng.integers(0, 5, n), np.where(rng.random(n) < 0.2, MISSING, numbers[:, 2])
    both = np.where(rng.random(n) < 0.1, MISSING, rng.integers(0, 3, n))
    mixed = np.column_stack([numbers[:, 0], levels, gaps, both])
    grid = [np.linspace(0.1, 0.9, 6), np.array([0.5, 1.5]), np.linspace(-1.0, 1.0, 9)]
    yield make_design(numbers)
    yield make_design(numbers, grid)
    yield make_design(mixed, None, np.array([0, 5, 0, -3]))
    yield make_design(mixed, [grid[0], np.empty(0), grid[2], np.empty(0)], np.array([0, 5, 0, -3]))


def as_set(design, rows, index):
    n = design.columns.shape[1]
    inside = np.isin(np.arange(n), rows)
    return RowSet(words_of(inside), len(rows), index)


def subsets(rng, n):
    yield np.arange(n)
    for size in (1, 2, 3, 20, n // 3, n - 1):
        yield np.sort(rng.choice(n, size, replace=False))
    yield np.arange(n // 2, n // 2 + 5)


def same_draws(seed, of_set, of_list):
    return of_set(np.random.default_rng(seed)) == of_list(np.random.default_rng(seed))


@pytest.mark.parametrize("which", tiers(range(4), quick=[0, 3]))  # of all kinds, on a grid
def test_a_set_answers_as_the_list_of_its_rows(which, rng):
    design = list(tables(rng))[which]
    p, n = design.columns.shape
    index, weights = make_row_index(design), np.full(p, 1 / p)
    prior = make_prior(0.95, 2.0, weights)
    for rows in subsets(rng, n):
        found, listed = as_set(design, rows, index), rows.astype(np.uint32)
        m = len(rows)
        assert count_rows(found.words) == m == list_rows(found)
        assert (found.index.row_list[:m] == rows).all()
        assert any_varies_in_set(design, found) == any_column_varies(design, listed, 0, m)
        if m == 1:
            continue
        for j in range(p):
            assert varies_in_set(design, j, found) == column_varies(design, j, listed, 0, m)
            if index.first_level_set[j] < 0:
                assert range_in_set(design, j, found) == column_range(design, j, listed, 0, m)
            if not varies_in_set(design, j, found):
                continue
            for seed in range(40):
                code, cut, log_p = draw_set_rule(np.random.default_rng(seed), design, j, found)
                of_list = draw_rule(np.random.default_rng(seed), design, j, listed, 0, m)
                assert (code, cut, log_p) == of_list
                assert log_set_rule(design, code, cut, found) == log_p
                check_sides(design, code, cut, found, listed)
                there = rng.choice(n, 9, replace=False)  # where it may part nothing
                other = as_set(design, there, index)
                few = np.sort(there).astype(np.uint32)
                log_there = log_rule(design, code, cut, few, 0, 9)
                assert log_set_rule(design, code, cut, other) == log_there
            args = (prior, design, j, -0.3, 0.0)
            assert log_set_column(*args, found) == log_column(*args, listed, 0, m)
        if any_varies_in_set(design, found):
            for seed in range(20):
                assert same_draws(
                    seed,
                    lambda rng, s=found: draw_set_column(rng, prior, design, s),
                    lambda rng, r=listed, m=m: draw_column(rng, prior, design, r, 0, m),
                )


def check_sides(design, code, cut, found, listed):
    left, right = np.zeros_like(found.words), np.zeros_like(found.words)
    n_left = left_rows(design, code, cut, found, left)
    remove_rows(found.words, left, right)
    again, buffer = listed.copy(), np.zeros_like(listed)
    assert partition_rows(design, code, cut, again, 0, len(again), buffer) == n_left
    for words, side in ((left, again[:n_left]), (right, again[n_left:])):
        inside = np.isin(np.arange(design.columns.shape[1]), side)
        assert (words == words_of(inside)).all()
    check_alike(design, code, cut, found, left, n_left)


def check_alike(design, code, cut, found, left, n_left):
    """Cuts from the first to before the last part the rows alike, and no others."""
    right = found._replace(words=found.words & ~left, n=found.n - n_left)
    low, high = equivalent_cuts(design, code, cut, found._replace(words=left, n=n_left), right)
    assert is_equivalent(cut, (low, high)) and (low == high or not is_equivalent(high, (low, high)))
    if low == high:
        assert code // len(design.columns) >= 2 or abs(cut) == EVERY_CELL
        assert log_equivalent((low, high)) == 0.0
        return
    assert log_equivalent((low, high)) == -np.log(high - low)
    least = 1.0 if design.is_grid else 1e-9
    there = np.zeros_like(left)
    for other, same in ((low, True), (high - least, True), (high, False), (low - least, False)):
        left_rows(design, code, other, found, there)
        assert (there == left).all() == same


def test_an_index_with_little_room_sends_rows_the_same_way(rng):
    design = next(tables(rng))
    dense, n = make_row_index(design), design.columns.shape[1]
    step = 100
    before = np.stack([[words_of(np.isin(np.arange(n), order[: b * step])) for b in range(4)]
                       for order in dense.order])  # fmt: skip
    sparse = dense._replace(before=before, step=step)
    rows = np.sort(rng.choice(n, 90, replace=False))
    for cut in np.linspace(-0.2, 1.2, 29):
        for column in range(3):
            sides = [np.zeros_like(as_set(design, rows, dense).words) for _ in range(2)]
            for index, out in zip((dense, sparse), sides):
                left_rows(design, column, cut, as_set(design, rows, index), out)
            assert (sides[0] == sides[1]).all()
            of_each = [
                range_in_set(design, column, as_set(design, rows, i)) for i in (dense, sparse)
            ]
            assert of_each[0] == of_each[1]


@pytest.mark.parametrize("name", ["mixed_grid", "missing", "onehot", "levels"])
def test_the_tiny_problems_too(name, rng):
    design = design_of(EVERY[name])
    p, n = design.columns.shape
    index = make_row_index(design)
    for _ in range(60):
        rows = np.sort(rng.choice(n, rng.integers(2, n + 1), replace=False))
        found, listed = as_set(design, rows, index), rows.astype(np.uint32)
        for j in range(p):
            if varies_in_set(design, j, found):
                code, cut, _ = draw_set_rule(rng, design, j, found)
                check_sides(design, code, cut, found, listed)


@pytest.mark.parametrize("n", [5, 64, 100, 1000])
@pytest.mark.parametrize("share", [0.02, 0.5, 1.0])
def test_sums_over_sets(n, share, rng):
    """To rounding: sums of numbers near 1."""
    x, inside = rng.normal(size=n), rng.random(n) < share
    words = words_of(inside)
    assert sum_over_set(words, inside.sum(), x) == pytest.approx(x[inside].sum(), abs=1e-10)


@pytest.mark.parametrize("precision", [2.0, "per row"])
@pytest.mark.parametrize("moved", [3, 150])
def test_statistics_of_leaves_whose_rows_have_changed(precision, moved, rng):
    n = 333
    design = make_design(rng.random((n, 1)))
    index = make_row_index(design)
    w = rng.uniform(0.5, 2.0, n) if precision == "per row" else precision
    leaf = make_normal(0.1, 0.8, rng.normal(size=n), w, 5)
    side = rng.random(n) < 0.5
    sets = [as_set(design, np.flatnonzero(side == s), index) for s in (True, False)]
    stats = [np.zeros(2), np.zeros(2)]
    for rows, out in zip(sets, stats):
        add_set(leaf, rows, out)
        listed = np.flatnonzero(np.isin(np.arange(n), rows.index.row_list[: list_rows(rows)]))
        by_list = np.zeros(2)
        add_rows(leaf, listed.astype(np.uint32), 0, len(listed), by_list)
        np.testing.assert_allclose(out, by_list, atol=1e-10)
    side[rng.choice(n, moved, replace=False)] ^= True
    now = [as_set(design, np.flatnonzero(side == s), index) for s in (True, False)]
    exact = [np.zeros(2), np.zeros(2)]
    for rows, out in zip(now, exact):
        add_set(leaf, rows, out)
    alone, pair = np.zeros(2), [np.zeros(2), np.zeros(2)]
    renew_set(leaf, now[0], sets[0].words, stats[0], alone)
    np.testing.assert_allclose(alone, exact[0], atol=1e-10)
    renew_sets(leaf, *now, tuple(s.words for s in sets), tuple(stats), *pair)
    np.testing.assert_allclose(pair, exact, atol=1e-10)


def test_sets_of_a_large_pool_take_the_memory_that_is_written_to(rng):
    """16 GB of addresses, and a few pages of them used."""
    psutil = pytest.importorskip("psutil")
    n = 100_000
    design = make_design(rng.random((n, 1)))
    before = psutil.Process().memory_info().rss
    work = make_workspace(1_300_000, 1, design)
    work.sets[7] = 1
    assert work.sets.shape == work.proposed.shape == (1_300_000, 1563)
    assert work.sets[6].sum() == 0 and work.sets[7].sum() == 1563
    assert work.sets.flags.c_contiguous and work.sets.flags.writeable
    assert psutil.Process().memory_info().rss - before < 2**29
