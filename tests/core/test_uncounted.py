"""Kernels count references where they make arrays, and nowhere else."""

import re
import sys
from typing import NamedTuple

import numpy as np
import pytest

from pymc_trees.core.compile.cache import njit


class Inner(NamedTuple):
    table: np.ndarray
    scale: float


class Outer(NamedTuple):
    rows: np.ndarray
    inner: Inner


@njit(cache=False)
def add_noise(rng, outer):
    rows, inner = outer.rows, Inner(outer.inner.table[::2], outer.inner.scale)
    if inner.scale < 0.0:
        raise ValueError("a negative scale")
    for i in range(rows.size):
        rows[i] += inner.scale * rng.standard_normal()
    for k in range(inner.table.shape[1]):
        inner.table[0, k] += 1.0


@njit(cache=False)
def add_noise_thrice(rng, outer):
    for _ in range(3):
        add_noise(rng, outer)
    return outer.rows[1:].sum()


@njit(cache=False)
def total_of_copies(pair):
    total = 0.0
    for _ in range(3):
        total += (pair[0] + 1.0).sum() + pair[1].sum()
    return total


@njit(cache=False)
def total_of_rows(pair):
    return pair[0][pair[1]].sum()


@njit(cache=False)
def tail(pair):
    return pair[0][2:]


@njit(cache=False)
def total_of_tail(pair):
    return tail(pair).sum()


@njit(cache=False)
def total_of_total(pair):
    return total_of_copies(pair) + total_of_tail(pair)


@njit(cache=False)
def listed(pair):
    kept = [pair[0]]
    kept.append(pair[1])
    return len(kept) + kept[-1].sum()


PAIR = np.arange(1000.0), np.arange(1000.0)
ROWS = np.arange(1000.0), np.arange(1000)
GIVEN = [
    (total_of_copies, PAIR),
    (total_of_rows, ROWS),
    (tail, PAIR),
    (total_of_tail, PAIR),
    (total_of_total, PAIR),
    (listed, PAIR),
]


def outer():
    return Outer(np.zeros(5), Inner(np.zeros((2, 2)), 0.5))


def counting_parts(kernel, word="NRT_incref("):
    """How many functions of a kernel's code, but for the wrappers for Python, count."""
    parts = next(iter(kernel.inspect_llvm().values())).split("\ndefine")[1:]
    names = [re.search(r'@"?([^"(\s]*)', part)[1] for part in parts]
    others = ("_ZN7cpython", "cfunc.", "NRT_")
    return sum(
        word in part for name, part in zip(names, parts, strict=True) if not name.startswith(others)
    )


def test_nothing_is_counted_where_nothing_is_made(rng):
    add_noise_thrice(rng, outer())
    assert counting_parts(add_noise_thrice) == 0


@pytest.mark.parametrize(("kernel", "pair"), [*GIVEN[:2], GIVEN[4]])
def test_what_is_made_is_counted(kernel, pair):
    kernel(pair)
    assert counting_parts(kernel, "NRT_decref(") > 0


def test_what_is_written_and_drawn_is_the_owners():
    lent, owned = outer(), outer()
    rng, other = np.random.default_rng(1), np.random.default_rng(1)
    assert add_noise_thrice(rng, lent) == lent.rows[1:].sum()
    for _ in range(3):
        add_noise.py_func(other, owned)
    np.testing.assert_array_equal(lent.rows, owned.rows)
    np.testing.assert_array_equal(lent.inner.table, [[3.0, 3.0], [0.0, 0.0]])
    assert rng.random() == other.random()


def test_counts_of_the_owner_stay(rng):
    lent = outer()

    def counts():
        return [sys.getrefcount(a) for a in (lent.rows, lent.inner.table, rng)]

    add_noise_thrice(rng, lent)
    before = counts()
    for _ in range(100):
        add_noise_thrice(rng, lent)
    for _ in range(100):
        with pytest.raises(ValueError, match="a negative scale"):
            add_noise(rng, lent._replace(inner=lent.inner._replace(scale=-1.0)))
    assert counts() == before


@pytest.mark.parametrize(("kernel", "pair"), GIVEN)
def test_arrays_are_given_back(kernel, pair):
    """Neither kept for ever nor let go too early."""
    pair = tuple(x.copy() for x in pair)
    expected = kernel.py_func(pair)
    np.testing.assert_array_equal(kernel(pair), expected)
    before = [sys.getrefcount(x) for x in pair]
    for _ in range(100):
        np.testing.assert_array_equal(kernel(pair), expected)
    assert [sys.getrefcount(x) for x in pair] == before


def test_what_is_returned_outlives_its_owner():
    kept = [tail((np.full(1000, k), np.ones(1))) for k in range(100)]
    for k, part in enumerate(kept):
        assert np.all(part == k)


def test_what_is_made_is_let_go():
    """100 MB a call: 20 calls would not fit where nothing is let go."""
    psutil = pytest.importorskip("psutil")
    pair = np.ones(2**22), np.ones(3)
    total_of_total(pair)
    before = psutil.Process().memory_info().rss
    for _ in range(20):
        assert total_of_total(pair) == 3 * (2.0**23 + 3.0) + 2.0**22 - 2
    assert psutil.Process().memory_info().rss - before < 2**28
