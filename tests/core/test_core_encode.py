"""Working arrays to the encoded value and back; what the prior and the function need of it."""

import math

import numpy as np
import pytest
from support.chains import CGM, make_setup, sweep_on, weights_of, with_float_cells
from support.naive import slow
from support.naive.laws import EVERY, MIXED
from support.tiers import tiers

from pymc_trees.core.forest.trees import make_trees
from pymc_trees.core.leaves.contract import ConstantLeaf
from pymc_trees.core.value.encode import decode, encode
from pymc_trees.core.value.evaluate import evaluate
from pymc_trees.core.value.fields import LEAF, UNUSED, Layout, compute_checksum, sizes
from pymc_trees.core.value.summary import column_choices_of, summarise

STAMP = 12345.0
M = 3
CASES = [("two_columns", "normal"), ("grid", "normal"), ("three_columns", "normal")]
CASES += [("repeats", "normal"), ("gaps", "dirichlet")]
MIXED_CASES = [("levels", "normal"), ("mixed_grid", "normal")]
# Several columns, ties; levels and missing cells below. A leaf of several values compiles anew.
QUICK = [("three_columns", "normal"), ("repeats", "normal")]


class Bench:
    """A chain of one problem with everything `encode` and `decode` take."""

    def __init__(self, name, leaf="normal"):
        self.problem = EVERY[name]
        self.m = M if leaf == "normal" else 1
        self.setup = make_setup(self.problem, leaf, m=self.m, data=False)
        self.n, self.p = self.problem.X.shape
        self.k = self.setup.trees.values.shape[1]
        self.max_nodes = self.setup.trees.column.size
        self.layout = Layout(self.m, self.max_nodes, self.k, self.n, name in MIXED)
        self.sizes = sizes(self.layout)
        self.weights = weights_of(self.problem, self.p)
        self.cells = slow.cells_of(self.setup.design)
        self.kinds = getattr(self.setup.design, "kinds", None)
        cuts = self.problem.prior.get("cuts")
        self.grid = np.empty(0) if cuts is None else np.concatenate(cuts)
        lengths = [] if cuts is None else [0, *map(len, cuts)]
        self.offsets = np.cumsum(lengths).astype(np.int64)

    def sweeps(self, rng, n):
        problem = with_float_cells(self.setup).problem  # one kernel: codes are read below
        assert sweep_on(rng, problem, CGM, self.setup.work, n)[0].any()

    def encode(self, trees=None):
        trees = self.setup.trees if trees is None else trees
        nodes = self.setup.work.nodes
        prior = self.setup.prior
        return encode(trees, self.setup.design, prior, self.sizes, STAMP, nodes)

    def decode(self, value):
        work = self.setup.work
        trees = make_trees(self.m, self.max_nodes, self.k, self.n)
        args = (self.setup.design, self.setup.prior, self.sizes, trees, work.rows, work.buffer)
        return trees if decode(value, *args) else None

    def roots(self):
        return [slow.read(self.setup.trees, t) for t in range(self.m)]


def stripped(root):
    """A tree without its places in the pool."""
    if isinstance(root, slow.Leaf):
        return root.values
    return (root.column, root.cut, stripped(root.left), stripped(root.right))


@pytest.mark.parametrize("name, leaf", tiers(CASES + MIXED_CASES, QUICK))
def test_round_trip_is_exact_to_the_bit(name, leaf, rng):
    bench = Bench(name, leaf)
    for _ in range(60):
        bench.sweeps(rng, 3)
        value = bench.encode()
        assert value.shape == bench.layout.shape
        trees = bench.decode(value)
        assert bench.encode(trees).tobytes() == value.tobytes()
        for t, root in enumerate(bench.roots()):
            assert stripped(slow.read(trees, t)) == stripped(root)
        kept = bench.setup.trees
        same_leaf = [f.leaf_of[:, :, None] == f.leaf_of[:, None, :] for f in (trees, kept)]
        assert (same_leaf[0] == same_leaf[1]).all()


def reseal(value, bench):
    value[bench.max_nodes, 0] = compute_checksum(value, bench.max_nodes, STAMP)
    return value


def a_split(bench, rng):
    """An encoded forest with a split in its first tree, and that split's row."""
    while True:
        bench.sweeps(rng, 1)
        value = bench.encode()
        if value[0, 0] >= 0:
            return value, 0


@pytest.mark.parametrize(
    "name", tiers(["two_columns", "grid", "repeats"], quick=["two_columns", "repeats"])
)
def test_decode_refuses_each_kind_of_invalid_value(name, rng):
    bench = Bench(name)
    value, row = a_split(bench, rng)
    assert bench.decode(value) is not None
    first_leaf = int(np.flatnonzero(value[:, 0] == LEAF)[0])
    used = int(np.flatnonzero(value[: bench.max_nodes, 0] == UNUSED)[0])
    column = int(value[row, 0])
    low, high = bench.problem.X[:, column].min(), bench.problem.X[:, column].max()
    changes = {
        "column 0.5": (row, 0, column + 0.5),
        "column p": (row, 0, bench.p),
        "column -3": (row, 0, -3.0),
        "column huge": (row, 0, 1e300),
        "column nan": (row, 0, np.nan),
        "column inf": (row, 0, np.inf),
        "cut below": (row, 1, low - 1.0),
        "cut at the largest": (row, 1, high),
        "cut above": (row, 1, high + 1.0),
        "cut nan": (row, 1, np.nan),
        "leaf missing": (first_leaf, 0, UNUSED),
        "leaf nan": (first_leaf, 1, np.nan),
        "leaf inf": (first_leaf, 1, np.inf),
        "split cut short": (row, 0, LEAF),
        "trailing leaf": (used, 0, LEAF),
        "trailing split": (bench.max_nodes - 1, 0, 0.0),
        "trailing nan": (bench.max_nodes - 1, 0, np.nan),
    }
    if name == "grid":
        changes["cut off the grid"] = (row, 1, value[row, 1] + 1e-9)
    for what, (i, j, new) in changes.items():
        broken = value.copy()
        broken[i, j] = new
        assert bench.decode(reseal(broken, bench)) is None, what


def test_decode_refuses_a_column_that_does_not_vary_in_the_node():
    bench = Bench("binary_constant")
    trees = make_trees(M, bench.max_nodes, 1, bench.n)
    value = bench.encode(trees)
    value[1:5] = value[:4]
    value[0] = [1.0, 5.0]  # the constant column
    assert bench.decode(value) is None


@pytest.mark.parametrize(
    "name",
    tiers(
        ["two_columns", "grid", "three_columns", "repeats", "missing", "mixed_grid"],
        quick=["three_columns", "repeats", "mixed_grid"],
    ),
)
def test_summary_agrees_with_the_slow_twin(name, rng):
    bench = Bench(name)
    alpha, beta = 0.7, 1.3
    for _ in range(40):
        bench.sweeps(rng, 5)
        value = bench.encode()
        splits, opened, leaves, log_cuts, log_columns, _ = summarise(value, bench.sizes, STAMP)
        depth = np.arange(len(splits))
        p = alpha * (1.0 + depth) ** -beta
        total = splits @ np.log(p) + opened @ np.log1p(-p) + log_cuts + log_columns
        exact, values, grid_terms = 0.0, [], 0.0
        for root in bench.roots():
            exact += slow.log_prior(root, bench.cells, alpha, beta, bench.weights)
            found = slow.visits(root, bench.cells)
            values += [v.node.values for v in found if isinstance(v.node, slow.Leaf)]
        assert total + grid_terms == pytest.approx(exact, abs=1e-9)
        assert np.array_equal(leaves, values)
        assert splits.sum() + len(values) == (value[: bench.max_nodes, 0] != UNUSED).sum()


@pytest.mark.parametrize(
    "name",
    tiers(["two_columns", "grid", "binary_constant", "levels"], quick=["levels"]),
)
def test_column_choices_agree_with_the_slow_twin(name, rng):
    bench = Bench(name)
    for _ in range(20):
        bench.sweeps(rng, 5)
        design = (bench.problem.X, bench.grid, bench.offsets)
        chosen, sets, counts = column_choices_of(
            bench.encode(), *design, STAMP, bench.sizes, bench.kinds
        )
        weights = rng.dirichlet(np.ones(bench.p))
        used = chosen > 0
        total = chosen[used] @ np.log(weights[used]) - counts @ np.log(sets @ weights)
        exact = 0.0
        for root in bench.roots():
            for node, _, rows, _ in slow.visits(root, bench.cells):
                if isinstance(node, slow.Split):
                    able = slow.varying(bench.cells, rows, np.ones(bench.p))
                    exact += math.log(weights[node.column % bench.p] / weights[able].sum())
        assert total == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("name, leaf", tiers(CASES, QUICK))
def test_evaluate_walks_as_the_slow_twin_ties_included(name, leaf, rng):
    bench = Bench(name, leaf)
    X = bench.problem.X
    bench.sweeps(rng, 50)
    value = bench.encode()
    splits = value[: bench.max_nodes][value[: bench.max_nodes, 0] >= 0]
    new = rng.uniform(X.min() - 1, X.max() + 1, (200, bench.p))
    for i, row in enumerate(splits):  # inputs exactly at a cut, and just above it
        new[2 * i, int(row[0])] = row[1]
        new[2 * i + 1, int(row[0])] = np.nextafter(row[1], np.inf)
    for inputs in (new, X.copy(), X):
        out = evaluate(value, inputs, X, ConstantLeaf(bench.k), bench.sizes, STAMP)
        exact = np.zeros_like(out)
        roots = [in_units_of_x(root, bench) for root in bench.roots()]
        for i, x in enumerate(inputs):
            for root in roots:
                exact[i] += slow.predict(root, x)
        assert np.allclose(out, exact, rtol=0, atol=1e-13)


def in_units_of_x(root, bench):
    if isinstance(root, slow.Leaf):
        return root
    cut = root.cut
    if bench.offsets.size:
        cut = bench.grid[bench.offsets[root.column] + int(cut)]
    sides = {side: in_units_of_x(getattr(root, side), bench) for side in ("left", "right")}
    return root._replace(cut=cut, **sides)


def test_what_is_not_a_forest_evaluates_to_nan_and_has_no_probability(rng):
    bench = Bench("two_columns")
    bench.sweeps(rng, 20)
    X, value = bench.problem.X, bench.encode()
    for broken, stamp in (
        (value + 1.0, STAMP),
        (np.full_like(value, np.nan), STAMP),
        (np.zeros_like(value), STAMP),
        (value, STAMP + 1),
    ):
        assert np.isnan(evaluate(broken, X, X, ConstantLeaf(bench.k), bench.sizes, stamp)).all()
        assert summarise(broken, bench.sizes, stamp)[3] == -np.inf


def test_evaluate_refuses_inputs_it_cannot_use(rng):
    bench = Bench("two_columns")
    value, X = bench.encode(), bench.problem.X
    with pytest.raises(ValueError, match="columns"):
        evaluate(value, X[:, :1].copy(), X, ConstantLeaf(bench.k), bench.sizes, STAMP)
    holes = X + 0.5
    holes[1, 1] = np.inf
    with pytest.raises(ValueError, match="infinite"):
        evaluate(value, holes, X, ConstantLeaf(bench.k), bench.sizes, STAMP)
