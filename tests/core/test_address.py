"""Kernels by address: the result of the kernel, also an exception, and in a process without JIT."""

import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
from numba import typeof, types

from pymc_trees.core.compile.address import address_of, call_at
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer


@by_pointer
class Rows(NamedTuple):
    x: np.ndarray
    add: int


@njit(cache=True)
def add_normal(rng, rows, scale):
    """Something with a generator, an array, and a float."""
    if scale < 0.0:
        raise ValueError("a negative scale")
    for i in range(rows.x.size):
        rows.x[i] += scale * rng.standard_normal()


@njit(cache=True)
def largest(rows):
    """Something that returns a number."""
    return rows.x.max()


@njit(cache=True)
def add_twice(rng, rows, scale):
    """Calls whatever the rows name."""
    for _ in range(2):
        call_at(rows.add, (rng, rows, scale), None)


@njit(cache=True)
def call_for_number(rows):
    return 1.0 + call_at(rows.add, (rows,), 0.0)


def rows_with(kernel, x, *others):
    rows = Rows(x, 0)
    kinds = [typeof(one) for one in others]
    kinds.insert(1 if others else 0, typeof(rows))
    return rows._replace(add=address_of(kernel, tuple(kinds)))


def test_it_is_the_kernel():
    rng, twin = (np.random.default_rng(3) for _ in range(2))
    rows = rows_with(add_normal, np.zeros(4), rng, 0.5)
    add_twice(rng, rows, 0.5)
    assert (rows.x == 0.5 * twin.standard_normal(4) + 0.5 * twin.standard_normal(4)).all()
    assert call_for_number(rows_with(largest, np.array([1.0, 4.0, 2.0]))) == 5.0


def test_an_exception_comes_through():
    rng = np.random.default_rng(3)
    with pytest.raises(ValueError, match="a negative scale"):
        add_twice(rng, rows_with(add_normal, np.zeros(4), rng, 0.5), -1.0)


def test_one_address_for_a_kernel_and_types():
    kinds = (typeof(Rows(np.zeros(1), 0)),)
    assert address_of(largest, kinds) == address_of(largest, kinds) != 0
    with pytest.raises(Exception, match="x"):
        address_of(largest, (types.int64,))


def test_without_compilation():
    run = (
        f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); import test_address as t; "
        "assert t.call_for_number(t.rows_with(t.largest, t.np.array([1.0, 4.0, 2.0]))) == 5.0"
    )
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "-c", run], check=True, env=environment)
