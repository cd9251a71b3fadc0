"""Columns as kernels read them, continuous and on a grid."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from pymc_trees.core.columns.design import (
    any_column_varies,
    column_range,
    column_varies,
    cut_code,
    cut_value,
    draw_cut,
    float_design,
    make_design,
    partition_rows,
)
from pymc_trees.core.columns.search import write_codes

GRID = [np.array([0.0, 0.5, 1.0, 2.0]), np.array([1.0]), np.array([3.0, 4.0])]


@pytest.fixture
def X(rng):
    n = 40
    return np.column_stack([rng.integers(0, 5, n) / 2, rng.normal(1, 1, n), np.full(n, 5.0)])


def spaces(n):
    return np.zeros(n, dtype=np.uint32), np.zeros(n, dtype=np.uint32)


def test_a_code_is_the_number_of_cuts_below(X):
    design = make_design(X, GRID)
    for j, cuts in enumerate(GRID):
        for i in range(len(X)):
            assert design.columns[j, i] == sum(c < X[i, j] for c in cuts)
            for k, c in enumerate(cuts):  # the rule on codes is the rule on X, ties included
                assert (design.columns[j, i] <= k) == (X[i, j] <= c)


@pytest.mark.parametrize("grid", [None, GRID])
def test_the_compiled_design_is_the_same(X, grid):
    design = make_design(X, grid)
    flat = np.empty(0) if grid is None else np.concatenate(grid)
    offsets = np.array([0, 4, 5, 7]) if grid else np.empty(0, dtype=np.int64)
    compiled = float_design(X, flat, offsets, np.ones(3))
    assert np.array_equal(compiled.columns, design.columns)
    assert np.array_equal(compiled.varies, design.varies)
    assert compiled.varies.tolist() == [True, True, False]
    assert compiled.is_grid == (grid is not None)
    off = float_design(X, flat, offsets, np.array([0.0, 1.0, 1.0]))
    assert off.varies.tolist() == [False, True, False]


@pytest.mark.parametrize("n_cuts, dtype", [(255, np.uint8), (256, np.uint16)])
def test_codes_of_long_grids_do_not_wrap(n_cuts, dtype):
    cuts = np.arange(n_cuts, dtype=float)
    design = make_design(np.array([[-1.0], [n_cuts + 1.0]]), [cuts])
    assert design.columns.dtype == dtype
    assert design.columns.tolist() == [[0, n_cuts]]


def test_cuts_go_to_codes_and_back(X):
    grid, free = make_design(X, GRID), make_design(X)
    for j, cuts in enumerate(GRID):
        for k, c in enumerate(cuts):
            assert cut_value(grid, j, float(k)) == c
            assert cut_code(grid, j, c) == k
            assert cut_code(grid, j, c + 1e-9) == -1
    assert cut_code(grid, 0, np.nan) == -1
    assert cut_code(grid, 0, 99.0) == -1
    assert cut_value(free, 0, 0.3) == cut_code(free, 0, 0.3) == 0.3


@pytest.mark.parametrize("grid", [None, GRID])
def test_ranges_and_variation_of_random_nodes(X, grid, rng):
    design = make_design(X, grid)
    rows, _ = spaces(len(X))
    for _ in range(300):
        size = int(rng.integers(1, len(X) + 1))
        rows[3 : 3 + min(size, 37)] = rng.permutation(len(X))[: min(size, 37)]
        start, stop = 3, 3 + min(size, 37)
        inside = design.columns[:, rows[start:stop]]
        varies = inside.min(axis=1) < inside.max(axis=1)
        for j in range(3):
            assert column_varies(design, j, rows, start, stop) == varies[j]
            low, high = column_range(design, j, rows, start, stop)
            assert (low, high) == (inside[j].min(), inside[j].max())
        assert any_column_varies(design, rows, start, stop) == varies.any()
    rows[:] = rng.permutation(len(X))
    for j in range(3):
        cells = design.columns[j]
        assert column_range(design, j, rows, 0, len(X)) == (cells.min(), cells.max())


def test_a_column_without_weight_never_varies(X):
    design = make_design(X)._replace(varies=np.array([False, False, False]))
    rows, _ = spaces(len(X))
    rows[:] = np.arange(len(X))
    assert not any_column_varies(design, rows, 0, len(X))


@pytest.mark.parametrize("grid", [None, GRID])
def test_partition_keeps_order_and_all_rows(X, grid, rng):
    design = make_design(X, grid)
    rows, spare = spaces(len(X))
    for _ in range(300):
        rows[:] = rng.permutation(len(X))
        start, stop = sorted(rng.integers(0, len(X) + 1, 2).tolist())
        j = int(rng.integers(3))
        before = rows.copy()
        # Half of the cuts are a cell itself: a tie goes left.
        cell = float(design.columns[j, rng.integers(len(X))])
        cut = cell if rng.random() < 0.5 else cell + rng.normal()
        middle = partition_rows(design, j, cut, rows, start, stop, spare)
        left = [i for i in before[start:stop] if design.columns[j, i] <= cut]
        right = [i for i in before[start:stop] if not design.columns[j, i] <= cut]
        assert middle == start + len(left)
        assert rows[start:stop].tolist() == left + right
        assert (rows[:start] == before[:start]).all() and (rows[stop:] == before[stop:]).all()


def test_cuts_stay_below_the_largest_cell(rng):
    free = make_design(np.zeros((2, 1)))
    low = 1.0
    for high in (np.nextafter(1.0, 2), 1.0 + 3e-16, 1.0 + 1e-12, 5.0):
        cuts = [draw_cut(rng, free, low, high) for _ in range(300)]
        assert all(low <= cut < high for cut in cuts)
    grid = make_design(np.zeros((2, 1)), [np.arange(9.0)])
    cuts = [draw_cut(rng, grid, 2.0, 5.0) for _ in range(300)]
    assert set(cuts) == {2.0, 3.0, 4.0}


def test_numbers_among_cuts(rng):
    """Cuts that are even, heavy-tailed, repeated numbers, close together, alone or absent."""
    for n in (0, 1, 2, 30, 299):
        close = 1 + 1e-12 * rng.normal(size=n)
        tails = rng.standard_cauchy(n) * 1e3 ** rng.integers(-2, 4)
        far = np.append(close, [-1e300, 1e300])
        for cuts in (rng.normal(size=n), tails, rng.integers(0, 9, n) * 1.0, close, far):
            cuts = np.unique(cuts)
            beside = [np.nextafter(cuts, end) for end in (-np.inf, np.inf)]
            cells = np.concatenate([rng.normal(size=50), cuts, *beside, [-1.7e308, 1.7e308]])
            codes = np.empty(len(cells), dtype=np.uint16)
            write_codes(cuts, cells, codes)
            assert_array_equal(codes, np.searchsorted(cuts, cells, side="left"))
