"""Sweeps that call a model and its moves by address, beside sweeps compiled for their types."""

import gc
import pickle
from typing import NamedTuple

import numpy as np
import pytest
from numba import config, float64, typeof
from numba.core import event
from numba.core.errors import TypingError
from support.chains.local_moves import ALL_MOVES, CGM
from support.chains.setups import float_cells

from pymc_trees.core.columns.design import make_design
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register
from pymc_trees.core.compile.handle import ROW, Handles, Role
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.forest.trees import make_trees
from pymc_trees.core.leaves.contract import add_row, log_marginal, log_marginals, swap_residual
from pymc_trees.core.leaves.dirichlet import make_dirichlet
from pymc_trees.core.leaves.nonconjugate.gaussian import GaussianVector
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.leaves.normal_gamma import make_normal_gamma
from pymc_trees.core.moves.by_address import ByAddress
from pymc_trees.core.moves.problem import Problem, make_workspace
from pymc_trees.core.priors.cgm import make_prior
from pymc_trees.core.priors.mondrian import make_mondrian
from pymc_trees.core.samplers.backfitting import sweeps

pytestmark = pytest.mark.skipif(config.DISABLE_JIT, reason="nothing has an address")

N, P = 60, 3
LEAVES = {"normal": (1, 2), "normal gamma": (2, 3), "dirichlet": (3, 3)}
KINDS = {
    "numbers": {},
    "grid": {"grid": [np.linspace(0.1, 0.9, 9)] * P},
    "levels": {"kinds": np.array([4, 0, -4])},
}


def problem_of(leaf_name, columns, prior_name, m):
    """Problem and workspace of stumps on random rows."""
    rng = np.random.default_rng(5)
    X = rng.random((N, P))
    y = np.sin(6 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=N)
    if columns == "levels":
        X[:, [0, 2]] = rng.integers(4, size=(N, 2))
    design = make_design(X, **KINDS[columns])
    n_values, n_stats = LEAVES[leaf_name]
    max_nodes, weights = 40 * m, np.full(P, 1 / P)
    leaf = {
        "normal": lambda: make_normal(0.0, 0.5, y.copy(), 0.3**-2, max_nodes),
        "normal gamma": lambda: make_normal_gamma(2.0, 3.0, 1.0, y.copy()),
        "dirichlet": lambda: make_dirichlet(1.0, 3, (X[:, 1] * 3).astype(np.int64)),
    }[leaf_name]()
    prior = make_prior(0.95, 2.0, weights)
    trees = make_trees(m, max_nodes, n_values, N)
    if prior_name == "mondrian":
        prior = make_mondrian(0.6, 0.0, weights)
        trees.rate[:m] = np.ptp(design.columns.astype(float), axis=1).sum()
    return Problem(trees, design, prior, leaf), make_workspace(max_nodes, n_stats, design)


CASES = [
    ("normal", "numbers", "cgm", 3),
    ("normal", "grid", "cgm", 3),
    ("normal", "levels", "cgm", 3),
    ("normal gamma", "numbers", "cgm", 1),
    ("dirichlet", "levels", "cgm", 1),
    ("normal", "numbers", "mondrian", 2),
    ("normal gamma", "grid", "mondrian", 1),
]


@pytest.mark.full  # `laws.test_exact_posterior` has the law of what is called by address
@pytest.mark.parametrize("case", CASES, ids=str)
def test_draws_are_those_of_code_compiled_for_the_types(case):
    found = []
    for is_called in (True, False):
        problem, work = problem_of(*case)
        rng, counts = np.random.default_rng(3), np.zeros((2, 7), dtype=np.int64)
        given, moves = (
            ByAddress(always=True)(problem, work, ALL_MOVES) if is_called else (problem, ALL_MOVES)
        )
        assert sweeps(rng, given, moves, work, 200, counts)
        trees = problem.trees
        found.append((trees.leaf_of, trees.cut, trees.values, trees.time, counts))
    assert found[0][-1][1].sum() > 30
    for called, compiled in zip(*found):
        np.testing.assert_array_equal(called, compiled)


@pytest.mark.full
def test_the_common_kind_has_sweeps_of_its_own():
    found = []
    for always in (True, False):
        problem, work = problem_of("normal", "numbers", "cgm", 3)
        given, moves = ByAddress(always=always)(problem, work, ALL_MOVES)
        assert (given is problem) == (not always) and moves.moves.dtype == np.int64
        counts = np.zeros((2, 7), dtype=np.int64)
        assert sweeps(np.random.default_rng(3), given, moves, work, 200, counts)
        found.append((problem.trees.leaf_of, problem.trees.values, counts))
    for one, other in zip(*found):
        np.testing.assert_array_equal(one, other)
    for case in (("normal", "grid", "cgm", 3), ("normal gamma", "numbers", "cgm", 1)):
        problem, work = problem_of(*case)
        assert ByAddress()(problem, work, CGM)[0] is not problem


def test_moves_of_one_forest_know_the_type_of_the_problem():
    """As where a screen fails: the likelihood is called by address, the screen is common."""
    maker, found = ByAddress(), []
    for leaf_name in ("normal gamma", "normal", "normal gamma", "normal"):
        problem, work = problem_of(leaf_name, "numbers", "cgm", 1)
        given, moves = maker(problem, work, CGM)
        found.append((type(given.leaf), moves.moves))
        counts = np.zeros((2, 7), dtype=np.int64)
        assert sweeps(np.random.default_rng(3), given, moves, work, 50, counts)
        found[-1] += (problem.trees.leaf_of.copy(), counts)
    assert found[0][0] is found[2][0] is not found[1][0]
    assert not np.array_equal(found[0][1], found[1][1])
    for one, other in ((0, 2), (1, 3)):
        np.testing.assert_array_equal(found[one][2], found[other][2])
        np.testing.assert_array_equal(found[one][3], found[other][3])


class Roots(event.Listener):
    """Kernels whose compilation was not part of another's."""

    def __init__(self):
        self.depth, self.names = 0, []

    def on_start(self, event):
        if self.depth == 0:
            self.names.append(event.data["dispatcher"].py_func.__name__)
        self.depth += 1

    def on_end(self, event):
        self.depth -= 1


def test_another_model_compiles_no_sweep_and_no_move():
    listener = Roots()
    for case in (("normal", "numbers", "cgm", 3), ("normal gamma", "grid", "mondrian", 1)):
        problem, work = problem_of(*case)
        given, moves = ByAddress(always=True)(problem, work, CGM)
        with event.install_listener("numba:compile", listener):
            sweeps(np.random.default_rng(1), given, moves, work, 1, np.zeros((2, 7), np.int64))
            if case[0] == "normal":
                listener.names.clear()
    assert listener.names == []


def test_moves_are_valid_without_their_maker():
    problem, work = problem_of("normal", "numbers", "cgm", 3)
    given, moves = ByAddress(always=True)(problem, work, ALL_MOVES)
    gc.collect()
    spent = [np.full(k, -1) for k in range(1000)]
    counts = np.zeros((2, 7), np.int64)
    assert sweeps(np.random.default_rng(1), given, moves, work, 20, counts)
    assert counts[0].all() and len(spent) == 1000


def test_a_move_without_a_weight_has_no_address():
    problem, work = problem_of("normal", "numbers", "cgm", 3)
    maker = ByAddress(always=True)
    _, moves = maker(problem, work, CGM)
    assert (moves.moves != 0).tolist() == (CGM.weights > 0).tolist()
    _, more = maker(problem, work, ALL_MOVES._replace(moves=CGM.moves))
    assert (more.moves != 0).all()
    assert (more.moves[:4] == moves.moves[:4]).all()


@by_pointer
class Line(NamedTuple):
    slope: float
    points: np.ndarray


SHAPE = Role("shape")


@generic("shape", args=(SHAPE, float64), result=float64)
def height(shape, x):
    """Height at a point."""


@generic("shape", args=(SHAPE,), result=float64, constant=True)
def steepness(shape):
    """One number for each."""


@generic("shape", args=(SHAPE, ROW), result=None)
def never(shape, row):
    """Not compiled in these tests."""


@njit(cache=False)
def _height(shape, x):
    return shape.slope * x + shape.points[1]


@njit(cache=False)
def _steepness(shape):
    return abs(shape.slope)


@njit(cache=False)
def both(shape, x):
    return height(shape, x) + 1000.0 * steepness(shape)


@njit(cache=False)
def call_never(shape, row):
    never(shape, row)


def handle_of(line, left_out=frozenset()):
    register(Line, height=_height, steepness=_steepness, never=_height)
    handles = Handles({"shape": (height, steepness, never)})
    return handles(lambda: {}, left_out | {"never"}, shape=line)[0]


def test_a_handle_holds_what_its_tuple_holds():
    handle = handle_of(Line(-2.0, np.array([1.0, 5.0])))
    gc.collect()
    spent = [np.full(2, 9.0) for _ in range(1000)]  # over whatever was let go
    assert both(handle, 3.0) == -1.0 + 2000.0
    assert handle.slope == -2.0 and len(spent) == 1000


def test_a_kernel_that_was_left_out_says_so():
    handle = handle_of(Line(1.0, np.zeros(2)))
    with pytest.raises(NotImplementedError, match="left out of a handle"):
        call_never(handle, np.zeros(3))


def test_an_argument_of_another_type_is_refused():
    handle = handle_of(Line(1.0, np.zeros(2)))
    with pytest.raises(TypingError, match=r"never: argument 1 is array\(int64"):
        call_never(handle, np.zeros(3, dtype=np.int64))


def test_a_kernel_that_is_not_listed_is_refused():
    problem, work = problem_of("normal", "numbers", "cgm", 1)
    given, _ = ByAddress(always=True)(problem, work, CGM)

    @njit(cache=False)
    def ask(leaf, row):
        return log_marginal(leaf, row), log_marginals(leaf, row, row)

    assert ask(given.leaf, np.ones(2))[0] == log_marginal(problem.leaf, np.ones(2))
    handle = handle_of(Line(1.0, np.zeros(2)))
    with pytest.raises(TypingError, match="log_marginal is not among the kernels"):
        ask(handle, np.ones(2))


def test_makers_travel_between_processes_without_addresses():
    problem, work = problem_of("normal", "numbers", "cgm", 1)
    maker = ByAddress(always=True)
    maker(problem, work, CGM)
    found, _ = pickle.loads(pickle.dumps(maker))(problem, work, CGM)
    assert typeof(found.leaf) == typeof(maker(problem, work, CGM)[0].leaf)


def test_cells_of_a_grid_and_of_floats_make_one_sweep():
    """The types of handles know nothing of the columns."""
    problem, work = problem_of("normal", "grid", "cgm", 1)
    given, _ = ByAddress(always=True)(problem, work, CGM)
    floats, _ = ByAddress(always=True)(
        problem._replace(design=float_cells(problem.design)), work, CGM
    )
    assert typeof(given) == typeof(floats)


def test_what_a_type_never_calls_is_left_out():
    """Gaussian rows of several outputs have no residual to swap: a handle has no kernel for it."""
    assert add_row.is_answered_by(GaussianVector)
    assert not swap_residual.is_answered_by(GaussianVector)
