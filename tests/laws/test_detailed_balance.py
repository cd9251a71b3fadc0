"""Detailed balance on a finite state space: all trees of a tiny grid, one move from each of them.

From each of S states one Metropolis move is made R times, which gives the row P_i. of the
transition matrix with binomial errors. With the exact posterior pi,

    pi_i P_ij - pi_j P_ji   has standard error   sqrt(pi_i^2 P_ij (1 - P_ij) / R + same for ji)

and so have the sums pi P = pi. Pairs expected less than 50 times in both directions together are
pooled. Some 400 pairs and 112 states per kernel, 11 kernels: at 5.5 standard errors one test fails
by chance in 10,000 fresh runs. Each move leaves pi invariant by itself, so each is tested alone.
Codes are those of a model with a grid, of eight bits; the chains of `support.laws.exact` have the
same numbers as floats, for which the kernels are there already.
"""

from typing import NamedTuple

import numpy as np
import pytest
from numba import njit
from support import oracle as o
from support.chains import CGM, with_weights
from support.chains.local_moves import called
from support.naive import slow
from support.tiers import tiers

from pymc_trees.core.columns.design import (
    any_column_varies,
    column_range,
    make_design,
    partition_rows,
)
from pymc_trees.core.columns.rules import log_column_probability
from pymc_trees.core.forest.trees import make_trees, preorder, reset_tree, split_leaf
from pymc_trees.core.leaves.contract import swap_residual
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.moves.problem import Problem, count_nodes, ensure_rows, make_workspace
from pymc_trees.core.priors.cgm import make_prior
from pymc_trees.core.samplers.backfitting import metropolis_move

Z = 5.5
BASE = 16  # a node's rule is one digit: 0 for a leaf, else 1 + 7 column + cut
X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [2.0, 0.0], [3.0, 1.0]])
# Two cuts in one gap of column 0: two states with one partition.
GRID = [np.array([0.2, 0.6, 1.5, 2.5]), np.array([0.5])]
Y = np.array([-0.8, 0.3, 0.9, -0.2, 0.5])
ALPHA, BETA = 0.8, 0.7
WEIGHTS = np.array([0.7, 0.3])
KERNELS = {
    "grow and prune": with_weights(0.6, 0.4, 0.0, 0.0),
    "change": with_weights(0.0, 0.0, 1.0, 0.0),
    "swap": with_weights(0.0, 0.0, 0.0, 1.0),
    "cgm": CGM,
    "uneven": with_weights(0.15, 0.35, 0.2, 0.3),
    "perturb": with_weights(0.0, 0.0, 0.0, 0.0, 1.0),
    "uneven with perturb": with_weights(0.3, 0.1, 0.05, 0.05, 0.5),
    "rotate": with_weights(0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
    "uneven with rotate": with_weights(0.2, 0.05, 0.05, 0.05, 0.25, 0.4),
    "restructure": with_weights(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
    "uneven with restructure": with_weights(0.2, 0.05, 0.05, 0.1, 0.1, 0.1, 0.4),
}


@njit(cache=True)
def set_tree(trees, word, length, design, weights, work):
    """Grow tree 0, a stump, into the tree whose digits in preorder are ``word``."""
    n = work.rows.size
    starts, stops = np.zeros(work.nodes.size, np.int64), np.zeros(work.nodes.size, np.int64)
    stops[trees.roots[0]] = n
    work.rows_valid[:] = False
    for i in range(n):
        work.rows[i] = i
    work.below[0] = trees.roots[0]
    height = 1
    for k in range(length):
        height -= 1
        node = work.below[height]
        start, stop = starts[node], stops[node]
        trees.count[node] = stop - start
        trees.unsplittable[node] = not any_column_varies(design, work.rows, start, stop)
        if word[k] == 0:
            for i in range(start, stop):
                trees.leaf_of[0, work.rows[i]] = node
            continue
        column, cut = (word[k] - 1) // 7, float((word[k] - 1) % 7)
        split_leaf(trees, node, column, cut)
        low, high = column_range(design, column, work.rows, start, stop)
        trees.log_cut[node] = -np.log(high - low)
        trees.log_column[node] = log_column_probability(
            design, weights, column, work.rows, start, stop
        )
        middle = partition_rows(design, column, cut, work.rows, start, stop, work.buffer)
        left, right = trees.left[node], trees.right[node]
        starts[left], stops[left] = start, middle
        starts[right], stops[right] = middle, stop
        work.below[height], work.below[height + 1] = right, left
        height += 2


@njit(cache=True)
def code_of(trees, nodes):
    """Whole number of a tree: its digits in preorder."""
    code = 1
    for k in range(preorder(trees, trees.roots[0], nodes)):
        node = nodes[k]
        digit = 0 if trees.column[node] < 0 else 1 + 7 * trees.column[node] + int(trees.cut[node])
        code = code * BASE + digit
    return code


@njit(cache=True)
def one_move_each(rng, words, lengths, problem, work, moves, design, leaf, y, repeats, codes):
    """Code of the tree after one move, ``repeats`` times from every tree."""
    trees = problem.trees
    for s in range(lengths.size):
        for k in range(repeats):
            reset_tree(trees, 0, work.nodes)
            set_tree(trees, words[s], lengths[s], design, WEIGHTS, work)
            leaf.r[:] = y
            census = count_nodes(trees, 0, work.nodes)
            ensure_rows(trees, 0, census.n_nodes, work)
            swap_residual(leaf, trees, -1, 0, work.nodes, census.n_nodes, work.stats)
            metropolis_move(rng, problem, 0, moves, census, work)
            codes[s, k] = code_of(trees, work.nodes)


class Space(NamedTuple):
    words: np.ndarray
    lengths: np.ndarray
    codes: np.ndarray
    pi: np.ndarray


def digit_of(node):
    return 0 if isinstance(node, slow.Leaf) else 1 + 7 * node.column + int(node.cut)


def space(design):
    """All trees, as digits, and their exact posterior."""
    cells = design.columns.T.astype(float)
    leaf = o.NormalLeaf(Y, 0.7, 0.2, 1.0)
    digits, scores = [], []
    for root in slow.all_trees(cells, WEIGHTS):
        found = slow.visits(root, cells)
        digits.append([digit_of(v.node) for v in found])
        scores.append(
            slow.log_prior(root, cells, ALPHA, BETA, WEIGHTS)
            + sum(leaf(rows) for rows in slow.leaves_of(root, cells))
        )
    words = np.zeros((len(digits), max(map(len, digits))), dtype=np.int64)
    for k, word in enumerate(digits):
        words[k, : len(word)] = word
    codes = []
    for word in digits:
        code = 1
        for digit in word:
            code = code * BASE + digit
        codes.append(code)
    pi = np.exp(np.array(scores) - max(scores))
    return Space(words, np.array([len(w) for w in digits]), np.array(codes), pi / pi.sum())


def transition_matrix(moves, repeats, seed):
    design = make_design(X, GRID)
    states = space(design)
    n = len(X)
    work = make_workspace(2 * n - 1, 2, design)
    leaf = make_normal(0.2, 1.0, Y.copy(), 0.7**-2, 2 * n - 1)
    prior = make_prior(ALPHA, BETA, WEIGHTS)
    after = np.empty((len(states.codes), repeats), dtype=np.int64)
    rng = np.random.default_rng(seed)
    problem = Problem(make_trees(1, 2 * n - 1, 1, n), design, prior, leaf)
    given = called(problem, work, moves)
    one_move_each(rng, states.words, states.lengths, *given, design, leaf, Y, repeats, after)
    order = np.argsort(states.codes)
    place = order[np.searchsorted(states.codes[order], after)]
    assert (states.codes[place] == after).all()  # never outside the listed trees
    size = len(states.codes)
    rows = np.repeat(np.arange(size), repeats)
    counts = np.bincount(rows * size + place.reshape(-1), minlength=size**2)
    return states.pi, counts.reshape(size, size) / repeats


def worst_z(pi, P, repeats):
    """Largest z of detailed balance over pairs, and of pi P = pi over states."""
    i, j = np.triu_indices(len(pi), 1)
    flow, back = pi[i] * P[i, j], pi[j] * P[j, i]
    # Under balance both chances are known from the pooled flow, also where one count is 0.
    pooled = (P[i, j] + P[j, i]) * repeats / (1 / pi[i] + 1 / pi[j])
    there, thence = pooled / pi[i] / repeats, pooled / pi[j] / repeats
    variance = pi[i] ** 2 * there * (1 - there) + pi[j] ** 2 * thence * (1 - thence)
    se = np.sqrt(variance / repeats)
    often = (there + thence) * repeats >= 50
    few = (pooled > 0) & ~often
    z = np.abs(flow - back)[often] / se[often]
    rest = abs((flow - back)[few].sum()) / np.sqrt((se[few] ** 2).sum()) if few.any() else 0.0
    still_se = np.sqrt((pi[:, None] ** 2 * P * (1 - P)).sum(axis=0) / repeats)
    still = np.abs(pi @ P - pi) / np.maximum(still_se, 1e-9)  # a state no move leaves has error 0
    return max(z.max(), rest), still.max()


@pytest.mark.parametrize(
    "kernel", tiers(KERNELS, quick=["swap", "uneven", "rotate", "restructure"])
)
def test_each_kernel_is_in_detailed_balance(kernel):
    repeats = 6000
    pi, P = transition_matrix(KERNELS[kernel], repeats, 5)
    balance, still = worst_z(pi, P, repeats)
    assert balance < Z and still < Z, (balance, still)


def test_every_tree_can_be_reached():
    """Grow and prune alone connect all trees."""
    _, P = transition_matrix(KERNELS["grow and prune"], 2000, 6)
    reached = np.linalg.matrix_power((P > 0).astype(float) + np.eye(len(P)), 12) > 0
    assert reached.all()


@pytest.mark.parametrize("wrong", ["alpha", "weights"])
def test_the_comparison_rejects_a_wrong_target(wrong, monkeypatch):
    """The states' pi with alpha 10% too small, or the split weights 0.85 and 0.15."""
    repeats = 6000
    _, P = transition_matrix(KERNELS["uneven"], repeats, 5)
    if wrong == "alpha":
        monkeypatch.setitem(globals(), "ALPHA", 0.72)
    else:
        monkeypatch.setitem(globals(), "WEIGHTS", np.array([0.85, 0.15]))
    pi = space(make_design(X, GRID)).pi
    assert max(worst_z(pi, P, repeats)) > 2 * Z
