"""A tree that was kept and put back is to the bit what it was, under every kind of moves."""

import numpy as np
import pytest
from support.chains import ALL_MOVES, make_setup, sweep_on
from support.naive.laws import PROBLEMS

from pymc_trees.core.forest.trees import make_saved_tree, preorder, restore_tree, save_tree


def state(setup):
    """What says all of a forest, unused places aside."""
    trees, work = setup.trees, setup.work
    nodes = np.empty_like(work.nodes)
    found = [trees.leaf_of.copy(), trees.n_free.copy(), trees.free[: trees.n_free[0]].copy()]
    for t in range(trees.roots.size):
        used = nodes[: preorder(trees, trees.roots[t], nodes)].copy()
        found += [used, work.sets[used]]
        fields = set(trees._fields) - {"roots", "leaf_of", "free", "n_free"}
        found += [getattr(trees, field)[used] for field in sorted(fields)]
    return found


@pytest.mark.parametrize("name", ["deep", "repeats"])
def test_a_tree_put_back_is_what_it_was(name, rng):
    problem = PROBLEMS[name]
    setup = make_setup(problem, "normal", m=2)
    trees, work = setup.trees, setup.work
    kept = make_saved_tree(trees, np.empty_like(work.sets))
    nodes, n_moves = np.empty_like(work.nodes), 5
    moves = ALL_MOVES._replace(per_visit=n_moves)
    changed = 0
    for _ in range(300):
        sweep_on(rng, setup.problem, moves, work)
        for t in range(2):
            before = state(setup)
            n_nodes = preorder(trees, trees.roots[t], nodes)
            save_tree(trees, t, nodes, n_nodes, work.sets, n_moves, kept)
            r = setup.leaf.r.copy()
            one = trees._replace(roots=trees.roots[t : t + 1], leaf_of=trees.leaf_of[t : t + 1])
            sweep_on(rng, setup.problem._replace(trees=one), moves, work)
            after = state(setup)
            changed += not all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
            restore_tree(trees, t, n_nodes, work.sets, n_moves, kept)
            setup.leaf.r[:] = r
            for a, b in zip(before, state(setup), strict=True):
                np.testing.assert_array_equal(a, b)
    assert changed > 300
