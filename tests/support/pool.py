"""The pool of nodes: nothing lost or used twice, and pools that are too small."""

import numpy as np

from pymc_trees.core.forest.trees import make_trees
from support.chains import make_setup


def pool_of(trees):
    """Places met in all trees, and unused places; asserts links on the way."""
    met = []
    for t in range(trees.roots.size):
        stack = [(int(trees.roots[t]), -1, 0)]
        while stack:
            node, parent, depth = stack.pop()
            met.append(node)
            assert trees.parent[node] == parent and trees.depth[node] == depth
            if trees.column[node] >= 0:
                stack += [(int(s[node]), node, depth + 1) for s in (trees.left, trees.right)]
            else:
                assert trees.left[node] == trees.right[node] == -1
                assert trees.log_cut[node] == trees.log_column[node] == 0.0
    return met, trees.free[: trees.n_free[0]].tolist()


def assert_conserved(trees):
    met, unused = pool_of(trees)
    assert sorted(met + unused) == list(range(trees.column.size))


def snapshot(trees):
    return [np.array(field) for field in trees]


def small(problem, m, room):
    """A setup whose pool has place for ``room`` splits only."""
    setup = make_setup(problem, "normal", m=m)
    trees = make_trees(m, m + 2 * room, 1, problem.n)
    trees.values[:m] = problem.mean
    return setup._replace(trees=trees)
