"""Named tuples by pointer: what kernels read, what comes back, and that nothing is counted."""

import gc
import os
import subprocess
import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest
from llvmlite import ir
from numba.extending import intrinsic

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register
from pymc_trees.core.compile.handle import copy_fields
from pymc_trees.core.compile.pointer import _BYTES, Pointer, _place, by_pointer, n_bytes


@by_pointer
class Inner(NamedTuple):
    table: np.ndarray
    scale: float
    nothing: None = None


@by_pointer
class Outer(NamedTuple):
    rows: np.ndarray
    is_on: bool
    inner: Inner
    pair: tuple
    n: int


class Plain(NamedTuple):
    rows: np.ndarray
    inner: Inner


def outer(n=5):
    table = np.arange(12.0).reshape(3, 4)[:, ::2]
    return Outer(np.arange(n, dtype=np.float64), True, Inner(table, 0.5), (np.ones(2), 3), n)


@generic("shape")
def weight(shape):
    """Weight of a shape."""


@njit(cache=False)
def _weight(shape):
    return shape.scale * shape.table[1, 1]


register(Inner, weight=_weight)


@njit(cache=False)
def read(outer):
    total = outer.inner.table.sum() + outer.pair[0].sum() + outer.pair[1] + outer.n
    for i in range(outer.rows.size):
        outer.rows[i] += 1.0
    if outer.is_on and outer.inner.nothing is None:
        total += weight(outer.inner)
    return total + outer.rows.sum()


@njit(cache=False)
def rebuilt(outer):
    """A tuple made in a kernel, with a pointer among its fields."""
    return Plain(outer.rows, outer.inner)


@njit(cache=False)
def weight_of_made(outer):
    made = Plain(outer.rows[1:], outer.inner)
    return weight(made.inner) + made.rows.sum()


@njit(cache=False)
def new_rows(outer):
    """Counts references: it allocates."""
    total = 0.0
    for _ in range(3):
        rows = outer.rows + outer.inner.scale
        total += rows.sum()
    return rows, total


@njit(cache=False)
def fails(outer):
    if outer.n > 3:
        raise ValueError("too many")
    return outer.n


def test_a_kernel_reads_and_writes_through_it():
    one = outer()
    assert read(one) == one.inner.table.sum() + 5.0 + 5 + 0.5 * 6.0 + 15.0
    assert (one.rows == np.arange(5.0) + 1.0).all()
    assert weight_of_made(one) == 3.0 + one.rows[1:].sum()


def test_what_comes_back_is_the_tuple_that_was_given():
    one = outer()
    found = rebuilt(one)
    assert found.inner is one.inner and found.rows is one.rows


@pytest.mark.parametrize("kernel", [read, rebuilt, weight_of_made, new_rows])
def test_no_reference_is_lost_or_kept(kernel):
    one = outer()
    kernel(one)
    watched = [one.rows, one.inner, one.inner.table, one.pair, one.pair[0]]
    before = [sys.getrefcount(what) for what in watched]
    for _ in range(1000):
        kernel(one)
    gc.collect()
    assert [sys.getrefcount(what) for what in watched] == before


def test_an_exception_comes_through():
    assert fails(outer(3)) == 3
    with pytest.raises(ValueError, match="too many"):
        fails(outer(4))


def test_types_are_those_of_the_fields():
    kind = numba.typeof(outer())
    assert isinstance(kind, Pointer) and kind == numba.typeof(outer(7))
    assert isinstance(kind.kind_of("inner"), Pointer) and kind.kind_of("side") is None
    other = outer()._replace(rows=np.zeros(3, dtype=np.float32))
    assert numba.typeof(other) != kind
    with pytest.raises(numba.TypingError, match="side"):
        njit(cache=False)(lambda outer: outer.side)(outer())


@by_pointer
class Drawn(NamedTuple):
    """One field of each type whose references numba counts."""

    rows: np.ndarray
    rng: np.random.Generator
    arrays: tuple
    plain: Plain
    n: int = 3


def drawn():
    plain = Plain(np.ones(2), Inner(np.ones((2, 2)), 1.0))
    return Drawn(np.ones(3), np.random.default_rng(1), (np.ones(4), (np.ones(5), 2.0)), plain)


@intrinsic
def _counters(typing_context, value, block):
    """Sum of the addresses of all counters in a block with the fields of a value."""

    def generate(context, builder, signature, values):
        block = context.make_array(signature.args[1])(context, builder, values[1])
        total = ir.Constant(ir.IntType(64), 0)
        for name, kind in zip(value.fields, value.types, strict=True):
            place = _place(context, builder, value, builder.bitcast(block.data, _BYTES), name)
            place = builder.bitcast(place, context.get_value_type(kind).as_pointer())
            for _, counter in context.nrt.get_meminfos(builder, kind, builder.load(place)):
                total = builder.add(total, builder.ptrtoint(counter, total.type))
        return total

    return numba.uint64(value, block), generate


@numba.njit
def counters(value, block):
    return _counters(value, block)


def test_no_counter_is_in_a_block_that_outlives_the_call():
    """numba's counter of a generator is freed at the end of the call, and a handle is not."""
    one = drawn()
    block = np.zeros(n_bytes(numba.typeof(one)) // 8, dtype=np.uint64)
    copy_fields(one, block)
    assert (block != 0).sum() > 20
    assert counters(one, block) == 0


@njit(cache=False)
def draw_and_read(drawn):
    """Allocates, and so counts references."""
    rows = drawn.rows + drawn.arrays[0][0] + drawn.arrays[1][0][0] + drawn.plain.rows[1]
    rng = drawn.rng
    for i in range(rows.size):
        rows[i] += drawn.rng.standard_gamma(2.0) - rng.random()
    return rows.sum(), drawn.rng.random()


def test_generators_and_tuples_of_arrays_are_read():
    one, other = drawn(), np.random.default_rng(1)
    total = 3 * 4.0 + sum(other.standard_gamma(2.0) - other.random() for _ in range(3))
    found = draw_and_read(one)
    assert np.isclose(found[0], total, rtol=1e-12) and found[1] == other.random()
    watched = [*one, one.arrays[0], one.plain.rows]
    before = [sys.getrefcount(what) for what in watched]
    for _ in range(1000):
        draw_and_read(one)
    gc.collect()
    assert [sys.getrefcount(what) for what in watched] == before


def test_a_field_behind_its_counter_is_refused():
    @by_pointer
    class Listed(NamedTuple):
        names: list

    with pytest.raises(TypeError, match="cannot be passed by pointer"):
        njit(cache=False)(lambda listed: 1)(Listed(numba.typed.List([1.0])))


def test_without_compilation_it_is_the_tuple():
    run = (
        f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); "
        "from test_pointer import outer, read; assert read(outer()) == 58.0"
    )
    subprocess.run(
        [sys.executable, "-c", run], check=True, env=os.environ | {"NUMBA_DISABLE_JIT": "1"}
    )
