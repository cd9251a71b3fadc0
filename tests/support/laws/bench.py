"""A tree from the prior, opened as a sweep opens it, beside its slow twin."""

import math

import numpy as np
import pytest

from pymc_trees.core.forest.trees import make_trees
from pymc_trees.core.leaves.contract import swap_residual
from pymc_trees.core.moves.problem import Problem, count_nodes, ensure_rows
from pymc_trees.core.priors.cgm import make_prior
from pymc_trees.core.samplers.prior_draw import draw_tree
from support.chains import make_setup, weights_of
from support.naive import slow

ATOL = 1e-9


class Bench:
    """A tree from the prior, opened as a sweep opens it."""

    def __init__(self, problem, rng):
        self.setup = make_setup(problem, "normal")
        self.n = problem.n
        self.alpha, self.beta = problem.prior["alpha"], problem.prior["beta"]
        self.weights = weights_of(problem, problem.X.shape[1])
        self.cells = slow.cells_of(self.setup.design)
        self.likelihood = problem.normal()
        trees = make_trees(1, self.setup.work.nodes.size, 1, self.n)
        work = self.setup.work
        prior = make_prior(self.alpha, 0.3, self.weights)  # deeper trees than the target's own
        assert draw_tree(rng, trees, 0, self.setup.design, prior, work.rows, work.buffer)
        self.trees = trees
        self.leaf = self.setup.leaf._replace(r=problem.y.copy())
        self.open()

    def open(self):
        work = self.setup.work
        self.census = count_nodes(self.trees, 0, work.nodes)
        work.rows_valid[:] = False
        ensure_rows(self.trees, 0, self.census.n_nodes, work)
        swap_residual(self.leaf, self.trees, -1, 0, work.nodes, self.census.n_nodes, work.stats)

    @property
    def problem(self):
        return Problem(self.trees, self.setup.design, self.setup.prior, self.leaf)

    @property
    def root(self):
        return slow.read(self.trees, 0)

    def log_prior(self, root):
        return slow.log_prior(root, self.cells, self.alpha, self.beta, self.weights)

    def log_target(self, root):
        prior = self.log_prior(root)
        if prior == -math.inf:
            return prior
        return prior + sum(self.likelihood(rows) for rows in slow.leaves_of(root, self.cells))

    def top_is_possible(self, place):
        """Whether the rule of a node has prior mass, whatever is below it."""
        at = next(v for v in slow.visits(self.root, self.cells) if v.node.place == place)
        rule = (at.node.column, at.node.cut)
        return slow.log_rule(self.cells, at.rows, self.weights, *rule) > -math.inf

    def counts(self, root):
        return slow.counts(root, self.cells, self.weights)


def check_kept(bench):
    """What the nodes keep equals what the slow twin finds."""
    trees = bench.trees
    for node, depth, rows, _ in slow.visits(bench.root, bench.cells):
        assert trees.depth[node.place] == depth
        assert trees.count[node.place] == len(rows)
        able = slow.varying(bench.cells, rows, bench.weights)
        assert bool(trees.unsplittable[node.place]) == (not able)
        if isinstance(node, slow.Leaf):
            assert np.flatnonzero(trees.leaf_of[0] == node.place).tolist() == list(rows)
        else:
            kept = trees.log_cut[node.place] + trees.log_column[node.place]
            rule = slow.log_rule(bench.cells, rows, bench.weights, node.column, node.cut)
            assert kept == pytest.approx(rule, abs=ATOL)
