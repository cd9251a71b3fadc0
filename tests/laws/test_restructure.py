"""Other trees with the same leaves: which there are, how they are drawn, by what they are accepted.

Against the definition (`support.naive.same_leaves`) on random trees: densities and ratios must
agree to rounding (1e-9), there is no Monte Carlo error. Draws are compared with it by chi-square at
p > 1e-5, some 100 tests in all tiers.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from support.chains import with_weights
from support.laws.bench import ATOL, Bench, check_kept
from support.laws.ratios import ratios_of
from support.naive import same_leaves, slow
from support.naive.laws import EVERY, PROBLEMS
from support.tiers import tiers

import pymc_trees.core.moves.restructure as restructure_module
from pymc_trees.core.columns.blocks import draw_separating, partition_blocks
from pymc_trees.core.columns.row_set import RowSet
from pymc_trees.core.forest.edit import split_leaf
from pymc_trees.core.forest.trees import make_trees
from pymc_trees.core.moves.restructure import (
    Restructure,
    leaf_blocks,
    log_rules,
    log_same_leaves,
    weigh_columns,
)
from pymc_trees.core.moves.subtree import load_subtree

P = 1e-5
NAMES = ["repeats", "binary_constant", "three_columns", "deep", "grid", "levels", "mixed_grid"]
NAMES += ["missing", "onehot"]
MOVES = with_weights(0.2, 0.1, 0.1, 0.05, 0.1, 0.05, 0.4)


@pytest.fixture(params=tiers(NAMES, quick=["deep", "mixed_grid"]))
def problem(request):
    return EVERY[request.param]


def density_of(bench, root):
    return same_leaves.log_density(root, bench.cells, bench.weights, bench.setup.design.is_grid)


def kernel_density(bench):
    """Log density of the tree of a bench by the kernels."""
    work = bench.setup.work
    subtree = load_subtree(bench.trees, bench.trees.roots[0], work)
    blocks = leaf_blocks(bench.problem, subtree, work)
    found = log_same_leaves(bench.problem, subtree, blocks, work)
    return found + log_rules(bench.trees.column, bench.trees.log_cut, work.below, subtree.n_nodes)


def test_it_accepts_by_the_ratio_of_the_definition(problem, rng, monkeypatch):
    """Six from each of 40 trees; every leaf keeps its rows, and its place; refused, all else too.

    Each split is drawn from a density that the definition gives, which is that of the tree that was
    left when the move starts from the tree it led to: so the ratio of the way back is the inverse.
    """
    ratios, sizes = ratios_of(restructure_module, monkeypatch), []
    for _ in range(40):
        bench = Bench(problem, rng)
        for _ in range(6):
            before = bench.root
            if bench.census.splits == 0:
                break
            assert kernel_density(bench) == pytest.approx(density_of(bench, before), abs=ATOL)
            ratios.refuse = bool(rng.random() < 0.3)
            args = (Restructure(), rng, bench.problem, 0, MOVES, bench.census, bench.setup.work)
            changed = restructure_module.restructure.py_func(*args)
            after = bench.root
            check_kept(bench)
            assert changed == (len(ratios) == 1 and not ratios.refuse)
            if not changed:
                assert slow.shape_of(before) == slow.shape_of(after)
                ratios.clear()
                continue
            bench.open()
            assert leaves_by_place(bench, before) == leaves_by_place(bench, after)
            exact = bench.log_prior(after) - bench.log_prior(before)
            exact += density_of(bench, before) - density_of(bench, after)
            assert ratios.pop() == pytest.approx(exact, abs=ATOL)
            if slow.shape_of(before) != slow.shape_of(after):
                sizes.append(len(slow.leaves_of(after, bench.cells)))
    assert len(sizes) > 40 and max(sizes) > 3


def leaves_by_place(bench, root):
    found = slow.visits(root, bench.cells)
    return {v.node.place: v.rows for v in found if isinstance(v.node, slow.Leaf)}


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


def test_draws_have_the_density_of_the_definition(problem, rng):
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
            totals.setdefault(leaves, []).append(math.exp(kernel_density(bench)))
    assert len(totals) > 10 and max(len(found) for found in totals.values()) > 4
    for found in totals.values():
        assert math.fsum(found) == pytest.approx(1.0, abs=ATOL)
