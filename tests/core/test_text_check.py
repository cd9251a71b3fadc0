"""Trees as text, and the checks of encoded values and working arrays."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.chains import sweep_on, with_weights
from support.check import FORM_CHECKS, VALUE_CHECKS, check_value
from support.check_trees import TREES_CHECKS, check_trees
from support.tiers import tiers

from pymc_trees.core.columns.design import make_design
from pymc_trees.core.forest.trees import make_trees, preorder
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.moves.problem import Problem, make_workspace
from pymc_trees.core.priors.cgm import make_prior
from pymc_trees.core.value.encode import encode
from pymc_trees.core.value.fields import (
    CHECKSUM,
    LOG_COLUMNS,
    LOG_CUTS,
    UNSPLITTABLE,
    UNUSED,
    Layout,
    compute_checksum,
    fingerprint,
    sizes,
)
from pymc_trees.core.value.text import forest_text, number_labels, tree_text

STAMP = fingerprint("a declaration")


class Chain:
    """A few trees on forty rows after some sweeps, in both forms."""

    def __init__(self, rng, n_cuts=None, weights=(0.4, 0.3, 0.3), m=3, n_sweeps=40):
        n = 40
        self.X = np.column_stack(
            [rng.random(n), rng.integers(0, 4, n), rng.integers(0, 2, n)]
        ).astype(float)
        self.weights = np.array(weights)
        self.grid = None
        if n_cuts is not None:
            self.grid = [
                np.unique(np.quantile(x, np.linspace(0.1, 0.8, n_cuts), method="lower"))
                for x in self.X.T
            ]
        self.layout = Layout(m, m * (2 * n - 1), 1, n)
        design = make_design(self.X, self.grid)
        self.design = design._replace(varies=design.varies & (self.weights > 0))
        self.trees = make_trees(m, self.layout.max_nodes, 1, n)
        y = np.sin(6 * self.X[:, 0]) + self.X[:, 2]
        leaf = make_normal(0.0, 0.5, y, np.array([100.0]), self.layout.max_nodes)
        moves = with_weights(0.3, 0.2, 0.3, 0.2)
        prior = make_prior(0.95, 0.5, self.weights)
        self.work = make_workspace(self.layout.max_nodes, 2, self.design)
        problem = Problem(self.trees, self.design, prior, leaf)
        self.counts = sweep_on(rng, problem, moves, self.work, n_sweeps)
        self.value = encode(
            self.trees, self.design, prior, sizes(self.layout), STAMP, self.work.nodes
        )

    @property
    def certificate(self):
        return self.value[self.layout.max_nodes :].reshape(-1)

    def check(self, value=None):
        value = self.value if value is None else value
        return check_value(value, self.X, self.layout, STAMP, self.grid, self.weights)

    def reseal(self):
        self.certificate[CHECKSUM] = compute_checksum(self.value, self.layout.max_nodes, STAMP)


@pytest.fixture
def chain(rng):
    return Chain(rng)


SMALL = Layout(2, 6, 1, 4)


def small_value():
    value = np.zeros(SMALL.shape)
    value[:6, 0] = [0, -1, 1, -1, -1, -1]
    value[:6, 1] = [0.52, 1.234, 7.0, -2.0, 0.5, 3.0]
    return value


def test_tree_is_indented_and_the_satisfied_side_comes_first():
    assert tree_text(small_value(), SMALL, 0) == (
        "x0 <= 0.52\n    leaf 1.234\n    x1 <= 7\n        leaf -2\n        leaf 0.5"
    )


def test_forest_text_names_columns_and_numbers_trees():
    text = forest_text(small_value(), SMALL, names=["hour", "day"])
    assert text.startswith("tree 0\nhour <= 0.52\n")
    assert "    day <= 7\n" in text
    assert text.endswith("tree 1\nleaf 3")


def test_cuts_have_as_many_digits_as_sort_the_training_rows():
    value = small_value()
    value[0, 1], value[2, 1] = 2010.65, 94103.5
    X = np.array([[2010, 94103], [2011, 94104], [1990, 10001]], dtype=float)
    text = tree_text(value, SMALL, 0, ["year", "zip"], X=X)
    year, code = (float(line.split("<= ")[1]) for line in text.splitlines() if "<=" in line)
    np.testing.assert_array_equal(X[:, 0] <= year, X[:, 0] <= 2010.65)
    np.testing.assert_array_equal(X[:, 1] <= code, X[:, 1] <= 94103.5)
    assert len(str(year)) == 6  # one digit after the point


@pytest.mark.parametrize(
    ("numbers", "texts"),
    [
        ([0.1, 2.0, np.nan], ["0.1", "2", "missing"]),
        ([94103, 94104, 94105], ["94103", "94104", "94105"]),
        ([10000, 20000], ["10000", "20000"]),
        ([1.00001, 1.00002, 1.00001], ["1.00001", "1.00002", "1.00001"]),
        ([1e-9, 1e12], ["1e-09", "1e+12"]),
        ([], []),
    ],
)
def test_different_numbers_read_differently(numbers, texts):
    assert number_labels(numbers) == texts


def test_all_values_of_a_leaf_are_printed():
    layout = Layout(1, 1, 3, 2)
    value = np.zeros(layout.shape)
    value[0] = [-1, 0.2, 0.3, 0.5]
    assert tree_text(value, layout, 0) == "leaf 0.2, 0.3, 0.5"


def test_text_of_something_else_is_an_error():
    with pytest.raises(ValueError, match="trees 0 to 1"):
        tree_text(small_value(), SMALL, 2)
    value = small_value()
    value[5, 0] = UNUSED
    with pytest.raises(ValueError, match="tree 1 is cut short: row 5 is an unused row"):
        tree_text(value, SMALL, 0)
    value[5, 0] = 1
    with pytest.raises(ValueError, match="tree 1 does not end within max_nodes=6"):
        tree_text(value, SMALL, 0)


@pytest.mark.parametrize("n_cuts", tiers([None, 5], quick=[None]))
@pytest.mark.parametrize("weights", [(0.4, 0.3, 0.3), (0.5, 0.0, 0.5)])
def test_what_the_samplers_make_passes_every_check(rng, n_cuts, weights):
    chain = Chain(rng, n_cuts, weights, n_sweeps=150)
    assert (chain.counts[1, :3] > 0).all(), "some move was never accepted"
    assert chain.check() == []
    assert check_trees(chain.trees, chain.design, chain.weights) == []


def test_rows_that_are_all_alike_close_a_leaf(rng):
    chain = Chain(rng, weights=(0.0, 0.5, 0.5), n_sweeps=400)
    words = chain.certificate[UNSPLITTABLE : UNSPLITTABLE + chain.layout.unsplittable_words]
    assert words.sum() > 0, "no leaf was unsplittable"
    assert chain.check() == []


def damage_unused(chain):
    chain.value[chain.layout.max_nodes - 1, 1] = 1.0


def damage_cut(chain):
    row = np.flatnonzero(chain.value[: chain.layout.max_nodes, 0] >= 0)[0]
    chain.value[row, 1] = 1e6


def damage_leaf(chain):
    row = np.flatnonzero(chain.value[: chain.layout.max_nodes, 0] == -1)[0]
    chain.value[row, 1] = np.nan


def damage_closed(chain):
    word = int(chain.certificate[UNSPLITTABLE])
    chain.certificate[UNSPLITTABLE] = float(word ^ 1)


def damage_log_cuts(chain):
    chain.certificate[LOG_CUTS] += 0.1


def damage_log_columns(chain):
    chain.certificate[LOG_COLUMNS] += 0.1


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (damage_unused, "follows the last tree"),
        (damage_cut, r"not within \[min, max\)"),
        (damage_leaf, "leaf value is not finite"),
        (damage_closed, "unsplittable bits"),
        (damage_log_cuts, "log_cuts = "),
        (damage_log_columns, "log_columns = "),
    ],
)
def test_each_damage_is_named(chain, damage, sentence):
    damage(chain)
    chain.reseal()
    assert any(re.search(sentence, text) for text in chain.check())
    assert not any("checksum" in text for text in chain.check())


def test_padding_and_checksum_are_checked(rng):
    for m in (3, 4):  # the padding is empty for one parity
        chain = Chain(rng, m=m, n_sweeps=2)
        if chain.layout.stop < chain.certificate.size:
            chain.certificate[-1] = 1.0
            assert [text.split()[0] for text in chain.check()] == ["The", "The"]
            assert "entries after the certificate" in chain.check()[0]
            break
    else:
        pytest.fail("no layout with padding was tried")
    assert "checksum does not match" in chain.check()[-1]


@pytest.mark.parametrize("column", [3.0, 0.5, np.inf])
def test_columns_are_whole_and_in_range(chain, column):
    row = np.flatnonzero(chain.value[: chain.layout.max_nodes, 0] >= 0)[0]
    chain.value[row, 0] = column
    assert "is not a whole number from 0 to 2" in chain.check()[0]


def test_form_is_checked_first(chain):
    assert "float64" in chain.check(chain.value.astype("float32"))[0]
    assert "shape" in chain.check(chain.value[:-1])[0]
    assert "contiguous" in chain.check(np.asfortranarray(chain.value))[0]
    chain.value[0, 0] = np.nan
    assert "not 3 trees in preorder" in chain.check()[0]


def leaf_of_tree(chain):
    trees = chain.trees
    n = preorder(trees, trees.roots[0], chain.work.nodes)
    return next(node for node in chain.work.nodes[:n] if trees.column[node] < 0)


def split_of_tree(chain):
    trees = chain.trees
    return next(root for root in trees.roots if trees.column[root] >= 0)


@pytest.mark.parametrize(
    ("field", "pick", "change", "sentence"),
    [
        ("parent", lambda c: c.trees.roots[0], 1, "has a parent"),
        ("depth", leaf_of_tree, 1, "depth"),
        ("left", leaf_of_tree, 2, "has children"),
        ("count", leaf_of_tree, 1, "counts"),
        ("unsplittable", split_of_tree, 1, "unsplittable is True"),
        ("log_cut", split_of_tree, 0.1, "log_cut, log_column are not"),
        ("log_column", leaf_of_tree, 0.1, "log_cut, log_column are not"),
        ("values", leaf_of_tree, np.inf, "has the values"),
        ("n_free", lambda c: 0, -1, "do not make up the pool"),
    ],
)
def test_each_damage_of_the_working_arrays_is_named(chain, field, pick, change, sentence):
    assert check_trees(chain.trees, chain.design, chain.weights) == []
    array, node = getattr(chain.trees, field), pick(chain)
    array[node] = array[node] + change
    assert any(sentence in s for s in check_trees(chain.trees, chain.design, chain.weights))


def test_leaf_of_is_checked(chain):
    tree = next(t for t, root in enumerate(chain.trees.roots) if chain.trees.column[root] >= 0)
    leaf_of = chain.trees.leaf_of[tree]
    leaf_of[np.flatnonzero(leaf_of != leaf_of[0])[0]] = leaf_of[0]
    assert "leaf_of sends" in check_trees(chain.trees, chain.design, chain.weights)[0]


def test_every_check_is_registered():
    assert len(FORM_CHECKS) == 3
    assert len(VALUE_CHECKS) == 8
    assert len(TREES_CHECKS) == 4
