"""Generic kernels: chosen by type in Python and in compiled code; what is missing is said."""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

import numba
import pytest

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, registrar


class Square(NamedTuple):
    side: float


class Circle(NamedTuple):
    radius: float


@generic("shape")
def area(factor, shape):
    """Area, times a factor."""


class ShapeKernels(NamedTuple):
    area: Callable
    name: Callable | None = None


register = registrar(ShapeKernels)


@njit(cache=True)
def _square(factor, shape):
    return factor * shape.side**2


@njit(cache=True)
def _circle(factor, shape):
    return factor * 3.0 * shape.radius**2


register(Square, area=_square)
register(Circle, area=_circle)


@njit(cache=True)
def twice(shape):
    return area(2.0, shape)


@pytest.mark.parametrize("shape, expected", [(Square(3.0), 18.0), (Circle(1.0), 6.0)])
def test_the_type_chooses_in_python_and_in_compiled_code(shape, expected):
    assert area(2.0, shape) == expected
    assert twice(shape) == expected
    assert area.__doc__ == "Area, times a factor."


def test_a_type_that_answers_nothing_is_refused():
    with pytest.raises(TypeError, match="tuple does not answer area"):
        area(1.0, (3.0,))
    with pytest.raises(numba.TypingError):
        twice((3.0,))


def test_a_contract_refuses_what_is_missing_and_what_it_does_not_know():
    with pytest.raises(TypeError, match="area"):
        register(Square)
    with pytest.raises(TypeError, match="volume"):
        register(Square, area=_square, volume=_square)


def test_kernels_run_as_python():
    code = (
        "import numpy as np\n"
        "from pymc_trees.core.leaves.contract import add_rows, log_marginal, n_stats\n"
        "from pymc_trees.core.leaves.dirichlet import make_dirichlet\n"
        "leaf = make_dirichlet(2.0, 2, np.array([0, 1, 1]))\n"
        "stats = np.empty(n_stats(leaf))\n"
        "add_rows(leaf, np.arange(3), 0, 3, stats)\n"
        "print(stats.tolist(), round(float(np.exp(log_marginal(leaf, stats))), 6))\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == "[1.0, 2.0] 0.083333"
