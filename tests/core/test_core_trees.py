"""The pool of nodes: split, join, and nothing lost or used twice."""

import numpy as np
import pytest
from support.chains import ALL_MOVES, CGM, make_setup, sweep_on, with_float_cells
from support.naive import slow
from support.naive.laws import PROBLEMS
from support.pool import assert_conserved, snapshot
from support.tiers import tiers

from pymc_trees.core.columns.design import make_design
from pymc_trees.core.columns.row_set import list_rows
from pymc_trees.core.forest.trees import count_forest, join_leaves, make_trees, preorder, split_leaf
from pymc_trees.core.moves.problem import make_workspace, rows_of


def test_new_trees_are_stumps_that_hold_all_rows():
    trees = make_trees(3, 10, 2, 5)
    assert_conserved(trees)
    assert (trees.count[:3] == 5).all()
    assert trees.leaf_of.tolist() == [[0] * 5, [1] * 5, [2] * 5]
    assert trees.n_free[0] == 7 and trees.values.shape == (10, 2)


def test_join_takes_back_what_split_gave():
    trees = make_trees(2, 8, 1, 4)
    before = snapshot(trees)
    assert split_leaf(trees, 1, 3, 0.25)
    left, right = trees.left[1], trees.right[1]
    assert trees.column[1] == 3 and trees.cut[1] == 0.25
    assert trees.depth[left] == trees.depth[right] == 1
    trees.leaf_of[1] = [left, right, right, left]
    assert_conserved(trees)
    join_leaves(trees, 1)
    trees.leaf_of[1] = 1
    assert_conserved(trees)
    for name, old, new in zip(trees._fields, before, trees):
        if name not in ("cut", "parent", "depth"):  # unused in a leaf, or of an unused place
            assert np.array_equal(old, new), name


def test_a_full_pool_refuses_and_stays_as_it_is():
    trees = make_trees(1, 4, 1, 4)  # room for one split; one place cannot be used
    assert split_leaf(trees, 0, 0, 0.5)
    before = snapshot(trees)
    assert not split_leaf(trees, trees.left[0], 0, 0.1)
    assert all(np.array_equal(old, new) for old, new in zip(before, trees))


@pytest.mark.parametrize("name", tiers(["two_columns", "grid"], quick=["two_columns"]))
def test_no_place_is_lost_in_10_000_sweeps(name, rng):
    setup = make_setup(PROBLEMS[name], "normal", m=3, data=False)
    cells = setup.design.columns.T.astype(float)
    counters = np.zeros((2, len(ALL_MOVES.moves)), dtype=np.int64)
    for _ in range(100):
        counters += sweep_on(rng, with_float_cells(setup).problem, ALL_MOVES, setup.work, 100)
        assert_conserved(setup.trees)
        for t in range(3):
            for node, _, rows, _ in slow.visits(slow.read(setup.trees, t), cells):
                assert setup.trees.count[node.place] == len(rows)
                if isinstance(node, slow.Leaf):
                    assert (setup.trees.leaf_of[t, list(rows)] == node.place).all()
    assert (counters[1] > 30).all(), counters


def test_preorder_rows_and_counts_agree_with_the_slow_twin(rng):
    problem = PROBLEMS["deep"]
    setup = make_setup(problem, "normal", m=2, data=False)
    trees, work = setup.trees, setup.work
    cells = setup.design.columns.T.astype(float)
    inclusion = np.empty(2, dtype=np.int64)
    for _ in range(200):
        assert sweep_on(rng, setup.problem, CGM, work)[0].any()
        used, leaves, depth = np.zeros(2), 0, 0
        for t in range(2):
            found = slow.visits(slow.read(trees, t), cells)
            n_nodes = preorder(trees, trees.roots[t], work.nodes)
            assert work.nodes[:n_nodes].tolist() == [v.node.place for v in found]
            for v in found:
                n = list_rows(rows_of(trees, v.node.place, work))
                assert work.rows[:n].tolist() == list(v.rows)
                if isinstance(v.node, slow.Leaf):
                    assert np.flatnonzero(trees.leaf_of[t] == v.node.place).tolist() == list(v.rows)
                    leaves, depth = leaves + 1, max(depth, v.depth)
                else:
                    used[v.node.column] += 1
        assert count_forest(trees, work.nodes, inclusion) == (leaves, depth)
        assert (inclusion == used).all()


def test_workspace_has_room_for_the_two_leaves_that_grow_proposes():
    assert len(make_workspace(1, 2, make_design(np.zeros((4, 1)))).new_stats) == 2
