"""One run of each method: CPU seconds of its kernels (prediction left out), test scores.

The prior is the thesis' (section 3.4.1): alpha 5 in all, split probability 0.95 (1 + depth)**-0.5.
"""

import time
from typing import NamedTuple

import numpy as np
import pymc as pm
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

import pymc_trees as pmt
from pymc_trees.core.leaves.contract import ConstantLeaf
from pymc_trees.core.moves.problem import Problem
from pymc_trees.core.samplers.backfitting import sweep
from pymc_trees.core.value.evaluate import evaluate
from pymc_trees.inference.tree_smc.island import Settings, run_island
from pymc_trees.inference.tree_smc.sample_tree_smc import read_tree
from pymc_trees.step_methods.kernels.local_moves import DEFAULT_MOVES, check_moves

ALPHA, ALPHA_S, BETA_S = 5.0, 0.95, 0.5
MAX_NODES = 2_000
EVERY = 100
"""Sweeps of CGM from one prediction to the next."""


class Score(NamedTuple):
    """CPU seconds, mean test log-probability, test accuracy, and further numbers."""

    seconds: float
    log_p: float
    accuracy: float
    log_z: float = np.nan
    leaves: float = np.nan


def score(data, probabilities, seconds, **more):
    picked = probabilities[np.arange(len(data.y_test)), data.y_test]
    accuracy = np.mean(probabilities.argmax(axis=1) == data.y_test)
    return Score(seconds, float(np.log(picked).mean()), float(accuracy), **more)


def read(data):
    """Tree, kernels' numbers and constant of the model."""
    with pm.Model() as model:
        p = pmt.DecisionTree(
            "p",
            data.X,
            alpha=ALPHA_S,
            beta=BETA_S,
            leaf=pmt.DirichletLeaf(ALPHA, data.n_classes),
            max_nodes=MAX_NODES,
        )
        pm.Categorical("y", p=p, observed=data.y, shape=p.shape[:1])
    return model, *read_tree(model)


def predict(data, forest, values):
    """Sum over encoded trees of the class probabilities of the test rows."""
    total = np.zeros((len(data.X_test), data.n_classes))
    leaf = ConstantLeaf(data.n_classes)
    for value in values:
        total += evaluate(value, data.X_test, data.X, leaf, forest.sizes, forest.fingerprint)
    return total


def smc(data, tree, particles, islands, proposal, expansion, seed):
    """``particles`` over all islands, one island after the other, averaged."""
    _, forest, problem, constant = tree
    settings = Settings(particles // islands, proposal, expansion, "multinomial", 0.1, 5_000)
    total, n, seconds, log_z, leaves = 0.0, 0, 0.0, [], []
    for rng in np.random.default_rng(seed).spawn(islands):
        start = time.process_time()
        island = run_island(rng, problem, settings)
        seconds += time.process_time() - start
        assert island.status == 1, f"status {island.status}"
        total = total + predict(data, forest, island.values)
        n += len(island.values)
        log_z.append(island.log_z + constant)
        leaves.append(island.counts[:, 0].mean())
    mean_z = float(np.mean(log_z))
    return score(data, total / n, seconds, log_z=mean_z, leaves=float(np.mean(leaves)))


def cgm(data, tree, budget, seed, n_checkpoints=25):
    """Scores of one chain at checkpoints, predictions averaged from its start."""
    model, forest, problem, _ = tree
    rng = np.random.default_rng(seed)
    arrays = forest.load(model.initial_point()[forest.value_name], problem.prior.weights)
    moves = check_moves(DEFAULT_MOVES)
    counts = np.zeros((2, len(moves.moves)), dtype=np.int64)
    trees = Problem(arrays.trees, problem.design, problem.prior, problem.leaf)
    checkpoints = np.geomspace(budget / 200, budget, n_checkpoints)
    total, n, seconds, scores = 0.0, 0, 0.0, []
    while len(scores) < n_checkpoints:
        start = time.process_time()
        for _ in range(EVERY):
            fits = sweep(rng, trees, moves, forest.work, counts)
            assert fits
        seconds += time.process_time() - start
        value = forest.store(arrays.trees, problem.prior.weights)
        total = total + predict(data, forest, [value])
        n += 1
        if seconds >= checkpoints[len(scores)]:
            leaves = float((value[: forest.sizes.max_nodes, 0] == -1).sum())
            scores.append(score(data, total / n, seconds, leaves=leaves))
    return scores


def cart(data, criterion):
    """scikit-learn's CART with 10 rows a leaf at least, smoothed by the same alpha (3.4.4)."""
    start = time.process_time()
    tree = DecisionTreeClassifier(criterion=criterion, min_samples_leaf=10, random_state=0)
    tree.fit(data.X, data.y)
    seconds = time.process_time() - start
    at = tree.apply(data.X_test)
    rows = tree.tree_.n_node_samples[at][:, None]
    shares = tree.tree_.value[at, 0] / tree.tree_.value[at, 0].sum(axis=1, keepdims=True)
    smoothed = (rows * shares + ALPHA / data.n_classes) / (rows + ALPHA)
    return score(data, smoothed, seconds, leaves=float(tree.get_n_leaves()))


def forests(data, kind):
    """100 trees of scikit-learn, shares of votes kept away from 0 and 1."""
    start = time.process_time()
    model = {"random forest": RandomForestClassifier, "extra trees": ExtraTreesClassifier}[kind]
    fitted = model(100, random_state=0, n_jobs=1).fit(data.X, data.y)
    seconds = time.process_time() - start
    p = fitted.predict_proba(data.X_test)
    return score(data, (100 * p + ALPHA / data.n_classes) / (100 + ALPHA), seconds)
