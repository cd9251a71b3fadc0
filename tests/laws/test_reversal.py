"""Moves accept by the ratio of the definition, there and back; their proposals reverse.

Ratios agree with the slow twin to rounding (1e-9), without any Monte Carlo error, for every move on
every kind of columns. Steps of a rule are symmetric: on a finite set of rules the numbers of steps
there and back, of 8,000 from each, differ by less than 5.5 binomial standard errors; some 3,000
pairs, one chance failure in 8,000 fresh runs. Draws of `restructure` are compared with its density
by chi-square at p > 1e-5, some 100 tests in all tiers.
"""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numba import njit
from scipy import stats
from support import oracle as o
from support.chains import ALL_MOVES, design_of, sweep_on
from support.laws import mondrian, reversal
from support.laws.bench import ATOL, Bench, check_kept
from support.naive import same_leaves, slow
from support.naive.laws import EVERY, PROBLEMS
from support.tiers import tiers

from pymc_trees.core.columns.blocks import draw_separating, partition_blocks
from pymc_trees.core.columns.cells import MAX_CUT as EVERY_CELL
from pymc_trees.core.columns.row_set import RowSet, make_row_index, words_of
from pymc_trees.core.columns.rules import log_rule
from pymc_trees.core.columns.steps import step_rule
from pymc_trees.core.forest.trees import make_trees, preorder, split_leaf
from pymc_trees.core.moves.restructure import leaf_blocks, weigh_columns
from pymc_trees.core.moves.subtree import load_subtree
from pymc_trees.core.moves.swap import exchange_rules

P = 1e-5
STEPS = 8_000
NAMES = ["repeats", "binary_constant", "three_columns", "deep", "grid", "levels", "mixed_grid"]
NAMES += ["missing", "onehot"]
MOVES = [
    reversal.grow,
    reversal.change,
    reversal.swap,
    reversal.perturb,
    reversal.rotate,
    reversal.restructure,
]
# Numbers, ties, levels and missing cells are all in the columns of "mixed_grid".
CASES = [(move, name) for move in MOVES for name in NAMES]
CASES += [(reversal.perturb_of_a_process, name) for name in mondrian.LIFETIMES]
QUICK = [(move, "mixed_grid") for move in MOVES]


@pytest.mark.parametrize(
    "move, name",
    tiers(CASES, QUICK),
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_the_ratio_is_that_of_the_definition(move, name, rng, monkeypatch):
    move(name, rng, monkeypatch)


@pytest.fixture(params=tiers(NAMES, quick=["mixed_grid"]))
def problem(request):
    return EVERY[request.param]


def test_the_census_counts_the_whole_tree(problem, rng):
    for _ in range(60):
        bench = Bench(problem, rng)
        found, census = bench.counts(bench.root), bench.census
        assert census.splittable_leaves == len(found.splittable_leaves)
        assert census.splits == len(found.splits) == len(found.pairs) + (len(found.splits) > 0)
        assert census.nogs == len(found.nogs)
        assert census.n_nodes == len(slow.visits(bench.root, bench.cells))


def test_exchange_takes_both_children_that_carry_the_same_rule(rng):
    """Grid trees meet equal rules; the pair of children then moves as one, and comes back."""
    problem, met = PROBLEMS["grid"], 0
    for _ in range(400):
        bench = Bench(problem, rng)
        trees = bench.trees
        for child in bench.counts(bench.root).pairs:
            top = trees.parent[child]
            left, right = trees.left[top], trees.right[top]
            same = trees.column[left] == trees.column[right] >= 0
            same = same and trees.cut[left] == trees.cut[right]
            before = slow.shape_of(bench.root)
            rule = (trees.column[top], trees.cut[top])
            exchange_rules(trees, child)
            moved = [(trees.column[k], trees.cut[k]) == rule for k in (left, right)]
            assert all(moved) if same else sum(moved) == 1
            exchange_rules(trees, child)
            assert slow.shape_of(bench.root) == before
            met += same
    assert met > 5


def test_nodes_keep_the_truth_through_long_runs(problem, rng):
    """`check_kept` after every of 300 sweeps of all moves."""
    bench = Bench(problem, rng)
    work, made = bench.setup.work, np.zeros(len(ALL_MOVES.moves))
    leaf = bench.leaf._replace(r=problem.y - bench.trees.values[bench.trees.leaf_of[0], 0])
    for _ in range(300):
        made += sweep_on(rng, bench.problem._replace(leaf=leaf), ALL_MOVES, work)[0]
        check_kept(bench)
    assert (made > 0).all()
    assert preorder(bench.trees, 0, work.nodes) == len(slow.visits(bench.root, bench.cells))
    assert isinstance(bench.likelihood, o.NormalLeaf)


@njit(cache=True)
def densities(design, codes, cuts, rows):
    out = np.empty(codes.size)
    for k in range(codes.size):
        out[k] = log_rule(design, codes[k], cuts[k], rows, 0, rows.size)
    return out


@njit(cache=True)
def steps(rng, design, code, cut, rows, largest, n):
    codes, cuts = np.empty(n, dtype=np.int64), np.empty(n)
    for k in range(n):
        codes[k], cuts[k] = step_rule(rng, design, code, cut, largest, rows)
    return codes, cuts


def set_of(design, rows):
    inside = np.isin(np.arange(design.columns.shape[1]), rows)
    return RowSet(words_of(inside), len(rows), make_row_index(design))


def every_rule(design, column):
    """All rules of a column of levels or of grid codes, possible or not."""
    p = len(design.columns)
    kind = design.kinds[column] if hasattr(design, "kinds") else None
    if kind is None:
        return [(column, float(c)) for c in range(8)]
    if kind != 0:
        return list(product([column + 2 * p, column + 3 * p], map(float, range(2 ** abs(kind)))))
    ways = [column, column + p]
    return [*product(ways, map(float, range(8))), (ways[0], EVERY_CELL), (ways[1], -EVERY_CELL)]


def possible_rules(design, column, rows):
    rules = every_rule(design, column)
    codes, cuts = np.array([r[0] for r in rules]), np.array([r[1] for r in rules])
    able = densities(design, codes, cuts, rows) > -np.inf
    return [rule for rule, possible in zip(rules, able) if possible]


DISCRETE = [("grid", 0), ("grid", 1), ("levels", 0), ("onehot", 0), ("mixed_grid", 0)]
DISCRETE += [("mixed_grid", 1)]


@pytest.mark.parametrize("name, column", tiers(DISCRETE, [("mixed_grid", 0)]))
def test_a_step_there_is_as_probable_as_the_step_back(name, column, rng):
    design = design_of(EVERY[name])
    n, moving = design.columns.shape[1], 0
    for size in (n, n, n - 1, n - 2, n - 3):
        rows = np.sort(rng.choice(n, size, replace=False)).astype(np.uint32)
        rules, as_set = possible_rules(design, column, rows), set_of(design, rows)
        place = {rule: k for k, rule in enumerate(rules)}
        counts = np.zeros((len(rules), len(rules)))
        for k, rule in enumerate(rules):
            found = zip(*map(np.ndarray.tolist, steps(rng, design, *rule, as_set, 1.0, STEPS)))
            for key in found:
                if key in place:
                    counts[k, place[key]] += 1
        share = (counts + counts.T) / (2 * STEPS)
        se = np.sqrt(2 * STEPS * share * (1 - share))
        assert (np.abs(counts - counts.T) <= 5.5 * np.maximum(se, 1e-9)).all()
        moving += (counts - np.diag(np.diag(counts))).sum()
    assert moving > STEPS


@pytest.mark.full
@pytest.mark.parametrize("largest", [0.3, 1.0])
def test_steps_of_a_cut_have_one_law_at_every_cut(largest, rng):
    """Kolmogorov-Smirnov of 4,000 steps at p > 1e-5: from two cuts, and turned round."""
    design = design_of(EVERY["gaps"])
    rows = set_of(design, np.arange(6))
    away = [steps(rng, design, 0, cut, rows, largest, 4000)[1] - cut for cut in (0.05, 6.5)]
    assert stats.ks_2samp(*away).pvalue > 1e-5
    assert stats.ks_2samp(away[0], -away[1]).pvalue > 1e-5
    assert np.abs(away).max() <= 7.0 * largest
    assert len(np.unique(away[0])) == 4000


def test_a_proposal_is_never_left_without_a_rule(problem, rng):
    """Any leaves of a tree, whatever others are left out, have a rule that parts them."""
    tried = 0
    for _ in range(60):
        bench = Bench(problem, rng)
        leaves = slow.leaves_of(bench.root, bench.cells)
        for _ in range(5):
            some = [leaf for leaf in leaves if rng.random() < 0.6]
            if len(some) > 1:
                rows = tuple(sorted(i for leaf in some for i in leaf))
                is_grid = bench.setup.design.is_grid
                assert same_leaves.uncut(bench.cells, rows, bench.weights, some, is_grid)
                tried += 1
    assert tried > 30


@pytest.mark.full
def test_draws_of_restructure_have_the_density_of_the_definition(problem, rng):
    """2,000 rules of every column at the root of trees of three leaves or more."""
    p, tried = problem.X.shape[1], 0
    while tried < 8:
        bench = Bench(problem, rng)
        if bench.census.splits < 2:
            continue
        work, design = bench.setup.work, bench.setup.design
        subtree = load_subtree(bench.trees, 0, work)
        blocks = leaf_blocks(bench.problem, subtree, work)
        rows = RowSet(work.sets[0], bench.trees.count[0], work.index)
        weights, n_blocks = np.empty((2, p)), (subtree.n_nodes + 1) // 2
        weigh_columns(bench.problem, blocks, 0, n_blocks, rows, weights)
        leaves, every = slow.leaves_of(bench.root, bench.cells), tuple(range(problem.n))
        for j in range(p):
            pieces = same_leaves.pieces_of(bench.cells, every, bench.weights, j, design.is_grid)
            pieces = [x for x in pieces if same_leaves.cuts_none(bench.cells, x, leaves)]
            assert (weights[1, j] > 0.0) == (len(pieces) > 0)
            if not pieces:
                continue
            drawn = [
                draw_separating(rng, design, j, blocks, 0, n_blocks, rows) for _ in range(2000)
            ]
            check_draws(drawn, pieces)
            code, cut = drawn[-1]
            middle = partition_blocks(design, code, cut, blocks, 0, n_blocks)
            goes = [slow.goes_left(bench.cells, leaves[b][0], code, cut) for b in blocks.order]
            assert all(goes[:middle]) and not any(goes[middle:]) and 0 < middle < n_blocks
            blocks.order.sort()
            tried += 1


def check_draws(drawn, pieces):
    codes, cuts = np.array(drawn).T
    inside = [
        (codes == x.code) & ((cuts == x.low) | ((cuts > x.low) & (cuts < x.high))) for x in pieces
    ]
    counts, mass = np.sum(inside, axis=1), np.array([x.mass for x in pieces])
    assert counts.sum() == len(drawn)
    if len(pieces) > 1:
        assert stats.chisquare(counts, mass / mass.sum() * len(drawn)).pvalue > P
    for x, found in zip(pieces, inside, strict=True):
        if x.high > x.low and cuts[0] != np.floor(cuts[0]):
            places = (cuts[found] - x.low) / (x.high - x.low)
            assert len(places) == 0 or stats.kstest(places, "uniform").pvalue > P


def plant(bench, root):
    """Make a tree the tree of a bench."""
    trees = make_trees(1, bench.setup.work.nodes.size, 1, bench.n)

    def walk(node, place, rows):
        trees.count[place] = len(rows)
        if isinstance(node, slow.Leaf):
            trees.leaf_of[0, list(rows)] = place
            return
        split_leaf(trees, place, node.column, node.cut)
        values = bench.cells[list(rows), node.column]
        trees.log_cut[place] = -math.log(values.max() - values.min())
        left = [i for i in rows if values[rows.index(i)] <= node.cut]
        walk(node.left, trees.left[place], left)
        walk(node.right, trees.right[place], [i for i in rows if i not in left])

    walk(root, 0, list(range(bench.n)))
    bench.trees = trees
    bench.open()


@pytest.mark.full
def test_the_trees_with_some_leaves_are_drawn_with_probability_one(rng):
    """The densities by the kernels, over all trees of a grid with given leaves, add up to 1."""
    X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [2.0, 0.0], [3.0, 1.0]])
    cuts = [np.array([0.2, 0.6, 1.5, 2.5]), np.array([0.5])]
    few = replace(PROBLEMS["grid"], X=X, y=X[:, 0], prior=dict(alpha=0.9, beta=0.8, cuts=cuts))
    bench, totals = Bench(few, rng), {}
    for root in slow.all_trees(bench.cells, bench.weights):
        leaves = frozenset(slow.leaves_of(root, bench.cells))
        if len(leaves) > 1:
            plant(bench, root)
            totals.setdefault(leaves, []).append(math.exp(reversal.kernel_density(bench)))
    assert len(totals) > 10 and max(len(found) for found in totals.values()) > 4
    for found in totals.values():
        assert math.fsum(found) == pytest.approx(1.0, abs=ATOL)
