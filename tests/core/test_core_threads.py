"""Rows in blocks: sums as without, to rounding, and to the bit for any number of threads."""

import numpy as np
import pytest

from pymc_trees.core.columns.design import make_design
from pymc_trees.core.columns.row_set import RowSet, count_rows, make_row_index
from pymc_trees.core.compile import threads
from pymc_trees.core.compile.threads import taken_threads
from pymc_trees.core.forest.trees import make_trees
from pymc_trees.core.leaves import threaded
from pymc_trees.core.leaves.contract import add_set, swap_residual
from pymc_trees.core.leaves.normal import make_normal

N, LEAVES = 5003, 7  # blocks of 320 rows, the last of 203
RNG = np.random.default_rng(0)
R, W = RNG.normal(size=N), RNG.gamma(2.0, size=N)
LABELS = RNG.integers(0, LEAVES, (2, N)).astype(np.uint32)
VALUES = RNG.normal(size=(LEAVES, 1))


@pytest.fixture
def few_rows(monkeypatch):
    """Threads for fewer rows than pay for them."""
    monkeypatch.setattr(threaded, "ROWS", 1000)


def leaf_of(precision, n_threads):
    leaf = make_normal(0.1, 0.7, R.copy(), precision, LEAVES)
    return leaf if n_threads is None else threaded.in_threads(leaf, n_threads)


def visit(precision, n_threads):
    """Residual, and statistics of the leaves of the second of two trees, when it is opened."""
    trees = make_trees(2, LEAVES, 1, N)
    trees.leaf_of[:], trees.values[:] = LABELS, VALUES
    trees.count[:] = np.bincount(LABELS[1], minlength=LEAVES)
    leaf, stats = leaf_of(precision, n_threads), np.zeros((LEAVES, 2))
    nodes = np.arange(LEAVES, dtype=np.int32)
    first = np.zeros((LEAVES, 2))
    swap_residual(leaf, trees, -1, 1, nodes, LEAVES, first)
    swap_residual(leaf, trees, 1, 0, nodes, LEAVES, stats)
    swap_residual(leaf, trees, 0, 1, nodes, LEAVES, stats)
    return leaf.r, np.hstack([first, stats])


def statistics(precision, n_threads, share):
    """Those of a set of rows."""
    index = make_row_index(make_design(RNG.random((N, 1))))
    chosen = np.random.default_rng(1).random(N) < share
    words = np.packbits(np.pad(chosen, (0, -N % 64)), bitorder="little").view(np.uint64)
    out = np.zeros(2)
    rows = RowSet(words, count_rows(words), index)
    add_set(leaf_of(precision, n_threads), rows, out)
    return out


@pytest.mark.parametrize("precision", [2.0, W])
def test_sums_are_those_of_rows_in_one_piece(few_rows, precision):
    (r, stats), (r_one, stats_one) = visit(precision, 1), visit(precision, None)
    assert type(leaf_of(precision, 1)) is threaded.ThreadedNormal
    np.testing.assert_array_equal(r, r_one)
    np.testing.assert_allclose(stats, stats_one, rtol=1e-12, atol=1e-9)
    for share in (0.001, 0.02, 0.5, 1.0):
        found, whole = statistics(precision, 1, share), statistics(precision, None, share)
        np.testing.assert_allclose(found, whole, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("precision", [2.0, W])
def test_any_number_of_threads_gives_the_same_bits(few_rows, precision):
    r, stats = visit(precision, 1)
    for n_threads in (2, 3, 4, 40):
        of_more = visit(precision, n_threads)
        np.testing.assert_array_equal(of_more[0], r)
        np.testing.assert_array_equal(of_more[1], stats)
        for share in (0.001, 0.5):
            one, more = (statistics(precision, k, share) for k in (1, n_threads))
            np.testing.assert_array_equal(one, more)


def test_few_rows_have_no_threads():
    assert type(leaf_of(2.0, 4)) is type(leaf_of(2.0, None))


def test_threads_go_to_one_caller_at_a_time(monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: 4)
    with taken_threads(3) as first, taken_threads(2) as second:
        assert (first, second) == (3, 1)
    with taken_threads(8) as later, taken_threads(1) as single:
        assert (later, single) == (4, 1)


def test_a_forked_process_leaves_openmp_alone(monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: 4)
    monkeypatch.setattr(threads, "_able", True)
    monkeypatch.setattr(threads.numba, "threading_layer", lambda: "tbb")
    threads._after_fork()
    with taken_threads(2) as of_tbb:
        assert of_tbb == 2
    monkeypatch.setattr(threads.numba, "threading_layer", lambda: "omp")
    threads._after_fork()
    with taken_threads(2) as of_openmp:
        assert of_openmp == 1
