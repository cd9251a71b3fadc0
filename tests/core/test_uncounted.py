"""Kernels that count no references: none where they may not, and not where an array is made."""

import sys

import numpy as np
import pytest

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.uncounted import without_counts


@njit(cache=False)
def first(pair):
    return pair[0]


@njit(cache=False, counts=False)
def total(pair):
    return first(pair).sum() + pair[1][::2].sum()


@njit(cache=False, counts=False)
def total_of_copy(pair):
    total = 0.0
    for _ in range(3):
        total += (first(pair) + 1.0).sum() + pair[1].sum()
    return total


@njit(cache=False, counts=False)
def gives_back(x):
    return x


def code_of(kernel):
    return next(iter(kernel.inspect_llvm().values()))


def kernels_of(code):
    """The code without wrappers for Python and numba's own functions."""
    parts = code.split("\ndefine")[1:]
    return [p for p in parts if not any(w in p.split("(")[0] for w in ("cpython", "cfunc", "NRT_"))]


def test_nothing_is_counted_where_nothing_is_made():
    pair = np.arange(5.0), np.arange(4.0)
    assert total(pair) == 10.0 + 2.0
    assert not any("NRT_incref(" in part for part in kernels_of(code_of(total)))


@pytest.mark.parametrize("kernel", [total, total_of_copy])
def test_arrays_of_the_caller_are_given_back(kernel):
    """Neither kept for ever nor let go too early."""
    pair = np.arange(1000.0), np.arange(1000.0)
    kernel(pair)
    before = [sys.getrefcount(x) for x in pair]
    for _ in range(1000):
        kernel(pair)
    assert [sys.getrefcount(x) for x in pair] == before


def test_what_is_made_is_let_go():
    """100 MB a call: 20 calls would not fit where nothing is let go."""
    psutil = pytest.importorskip("psutil")
    pair = np.ones(2**22), np.ones(3)
    total_of_copy(pair)
    before = psutil.Process().memory_info().rss
    for _ in range(20):
        assert total_of_copy(pair) == 3 * (2.0**23 + 3.0)
    assert psutil.Process().memory_info().rss - before < 2**28


def test_an_array_is_not_given_back():
    with pytest.raises(TypeError, match=r"gives_back returns .*counts=False returns a number"):
        gives_back(np.ones(3))


def test_code_that_makes_an_array_stays_as_it_is():
    counted = 'define i32 @"a"(ptr %x) {\n  tail call void @NRT_incref(ptr %x)\n'
    made = "  %y = tail call ptr @NRT_MemInfo_alloc_aligned(i64 8, i32 32)\n"
    assert without_counts(counted + made + "}") == counted + made + "}"
    assert without_counts(counted + "}") == 'define i32 @"a"(ptr %x) {\n}'
    wrapper = counted.replace('"a"', "_ZN7cpython4pathE")
    assert without_counts(wrapper + "}") == wrapper + "}"
    typed = 'define i32 @"a"(i8* %x) {\n  call void @NRT_decref(i8* %x)\n}'  # of older LLVM
    assert without_counts(typed) == 'define i32 @"a"(i8* %x) {\n}'
