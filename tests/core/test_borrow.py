"""Borrowed arrays and generators are those of the owner, and no count changes."""

import sys
from typing import NamedTuple

import numpy as np
from numba import njit

from pymc_trees.core.compile.borrow import borrowed


class Inner(NamedTuple):
    table: np.ndarray
    scale: float


class Outer(NamedTuple):
    rows: np.ndarray
    inner: Inner


@njit
def _add_noise(rng, outer):
    rows, table = outer.rows, outer.inner.table
    for i in range(rows.size):
        rows[i] += outer.inner.scale * rng.standard_normal()
        table[i % 2, 0] += 1.0


@njit
def _with_borrowed(rng, outer):
    rng, outer = borrowed((rng, outer))
    for _ in range(3):
        _add_noise(rng, outer)


def _outer():
    return Outer(np.zeros(5), Inner(np.zeros((2, 2)), 0.5))


def test_owner_sees_what_is_written_and_drawn():
    lent, owned = _outer(), _outer()
    rng, other = np.random.default_rng(1), np.random.default_rng(1)
    _with_borrowed(rng, lent)
    for _ in range(3):
        _add_noise(other, owned)
    np.testing.assert_array_equal(lent.rows, owned.rows)
    np.testing.assert_array_equal(lent.inner.table, [[9.0, 0.0], [6.0, 0.0]])
    assert rng.random() == other.random()
    assert np.all(lent.rows != 0.0)


def test_counts_of_the_owner_stay():
    outer, rng = _outer(), np.random.default_rng(1)
    _with_borrowed(rng, outer)

    def counts():
        return [sys.getrefcount(a) for a in (outer.rows, outer.inner.table, rng)]

    before = counts()
    for _ in range(100):
        _with_borrowed(rng, outer)
    assert counts() == before
