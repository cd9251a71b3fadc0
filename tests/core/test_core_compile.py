"""A line while kernels compile, and kernels that compiled code calls by name."""

import gc
import importlib
import logging
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from numba import carray, njit, typeof, types
from support.chains.setups import make_setup
from support.naive.laws import PROBLEMS

import pymc_trees.core.compile.announce as announce
from pymc_trees.core.columns.design import make_design
from pymc_trees.core.compile.cache import described
from pymc_trees.core.compile.cache import njit as kernel
from pymc_trees.core.compile.external import external


def compilation(module, name="kernel", *args):
    """Event of a function's compilation."""
    function = SimpleNamespace(__module__=module, __name__=name)
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function), "args": args})


@pytest.fixture
def clock(monkeypatch):
    """Seconds that the announcer reads; set by the test."""
    time = SimpleNamespace(now=0.0)
    monkeypatch.setattr(announce, "perf_counter", lambda: time.now)
    return time


def test_a_long_compilation_is_announced_with_its_kind(clock, caplog):
    setup = make_setup(PROBLEMS["deep"], "normal_gamma")
    ours = compilation("pymc_trees.core.x", "sweeps", typeof(setup.problem), types.int64)
    other = compilation("numba.y")
    announcer = announce.Announcer()
    with caplog.at_level(logging.INFO, logger="pymc.trees"):
        for _ in range(5):  # short ones are not worth a line
            announcer.on_start(ours)
            assert not gc.isenabled()
            clock.now += 0.9
            announcer.on_start(other)
            announcer.on_end(other)
            announcer.on_end(ours)
            assert gc.isenabled()
        assert not caplog.messages
        announcer.on_start(ours)
        for seconds in (1.1, 5.0, 5.1, 9.0):
            clock.now += seconds
            announcer.on_start(other)
            announcer.on_end(other)
        announcer.on_end(ours)
    what = "local moves of trees (normal gamma leaf, numbers)"
    assert caplog.messages == [
        f"Compiling {what}: about 15 s on an idle machine, once. The code is kept for later runs.",
        f"... {what}: 11 s, 4 kernels so far.",
    ]


@pytest.mark.parametrize(
    ("what", "seconds"),
    [
        ("samplers of trees (normal leaf, numbers)", 30),
        ("samplers of trees (rowwise leaf, levels or missing cells)", 40),
        ("particle Gibbs (normal leaf, columns on a grid)", 20),
        ("Shapley values", 10),
    ],
)
def test_the_estimate_is_that_of_the_kind(what, seconds):
    assert announce.estimate(what) == seconds


@pytest.mark.parametrize(
    ("name", "words"), [("uint8", "columns on a grid"), ("levels", "levels or missing cells")]
)
def test_columns_in_words(name, words):
    X, kinds, grid = np.arange(8.0).reshape(4, 2), None, [np.array([0.5]), np.array([1.5])]
    if name == "levels":
        kinds, grid = np.array([3, 0]), None
    given = SimpleNamespace(fields=("design",), types=(typeof(make_design(X % 3, grid, kinds)),))
    text = announce.purpose(SimpleNamespace(__name__="_any_kernel"), (types.int64, given))
    assert text == f"any kernel ({words})"


def test_the_collector_stays_off_where_it_was(clock):
    gc.disable()
    try:
        announcer = announce.Announcer()
        announcer.on_start(compilation("pymc_trees.core.x"))
        announcer.on_end(compilation("pymc_trees.core.x"))
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_compilations_of_other_packages_do_not_count(clock, caplog):
    announcer = announce.Announcer()
    with caplog.at_level(logging.INFO, logger="pymc.trees"):
        for _ in range(3):
            announcer.on_start(compilation("other.package"))
            clock.now += 10.0
            announcer.on_end(compilation("other.package"))
        announcer.on_start(compilation(None))
    assert not caplog.messages


@pytest.mark.full
def test_the_line_is_shown_as_the_lines_of_pymc_are():
    code = "import logging, pymc; logging.getLogger('pymc.trees').info('a line')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "a line"


@external(types.int64(types.voidptr, types.int64))
def add_up(numbers, n):
    """Sum of whole numbers."""
    from_address = carray(numbers, (n,), np.int64)
    total = 0
    for k in range(n):
        total += from_address[k]
    return total


def test_compiled_code_calls_a_kernel_by_its_name():
    call = add_up.link()
    assert add_up.link() is call

    @njit
    def caller(numbers):
        return call(numbers.ctypes, numbers.size)

    assert caller(np.arange(10)) == 45


@kernel(cache=False)
def twice(x):
    """A kernel."""
    return 2 * x


def applied(function):
    """External that closes over a kernel."""

    @external(types.int64(types.int64), of=described(function.py_func))
    def apply(n):
        return function(n)

    return apply


def test_externals_of_several_kernels_are_told_apart():
    calls = [applied(function).link() for function in (twice, plus_one)]
    assert len({call.symbol for call in calls}) == 2
    first, second = calls

    @njit
    def caller(n):
        return first(n), second(n)

    assert caller(10) == (20, 11)


def test_what_lies_outside_is_known_by_the_state_of_its_file(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    names = []
    for text in ("class Leaf: pass\n", "class Leaf: pass  # edited\n"):
        (tmp_path / "outside_leaf.py").write_text(text)
        sys.modules.pop("outside_leaf", None)
        importlib.invalidate_caches()
        names.append(described(importlib.import_module("outside_leaf").Leaf))
    sys.modules.pop("outside_leaf")
    assert names[0] != names[1] and all(name.startswith("outside_leaf.Leaf.") for name in names)
    assert described(announce.Announcer) == "pymc_trees.core.compile.announce.Announcer"


@kernel(cache=False)
def plus_one(x):
    """A kernel."""
    return x + 1


def test_what_only_kernels_call_has_no_machine_code():
    @njit
    def caller(x):
        return plus_one(x)

    assert caller(1) == 2
    assert plus_one.signatures == []
    assert plus_one(1) == 2
    assert len(plus_one.signatures) == 1


@kernel(cache=False)
def total(x):
    """Sum, from the first number on."""
    s = 0.0
    for i in range(x.size):
        s += x[i]
    return s


@kernel(cache=False)
def reciprocal(x):
    """One over a number."""
    return 1.0 / x


def test_sums_keep_their_order_whoever_compiles_a_kernel_first():
    """Such as graphs of PyTensor, which allow another order."""

    @kernel(cache=False)
    def between(x):
        return total(x)

    @njit(fastmath=True)
    def caller(x):
        return between(x)

    x = np.random.default_rng(0).normal(size=10_000)
    as_written = np.add.accumulate(x)[-1]
    assert caller(x) == as_written == between(x)
    assert njit(fastmath=True)(total.py_func)(x) != as_written


def test_division_by_zero_is_an_error_whoever_compiles_a_kernel_first():
    @njit(error_model="numpy")
    def caller(x):
        return reciprocal(x)

    with pytest.raises(ZeroDivisionError):
        caller(0.0)
