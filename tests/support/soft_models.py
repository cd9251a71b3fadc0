"""Small data, models and exact values that the tests of soft trees share."""

import numpy as np
import pymc as pm

import pymc_trees as pmt
from pymc_trees.dcc.topology_model import TopologyModel

TOPOLOGIES = ("L", "SLL", "SSLLL", "SLSLL", "SSLLSLL")


def step_data(n=40, p=1, seed=5):
    """Rows with a step up in the first input, and half as large a step down further on."""
    rng = np.random.default_rng(seed)
    X = np.sort(rng.random((n, p)), axis=0) if p == 1 else rng.random((n, p))
    f = np.where(X[:, 0] > 0.4, 1.0, -1.0) - np.where(X[:, 0] > 0.75, 1.0, 0.0)
    return X, f + rng.normal(0, 0.3, n)


def regression(n=40, p=1, h=(0.2, 0.05), **settings):
    """Soft tree with noise of unknown sd, as in the paper."""
    X, y = step_data(n, p)
    with pm.Model() as model:
        mu = pmt.SoftDecisionTree("mu", X, y, h=h, **settings)
        sigma = pm.InverseGamma("sigma", 1.5, 1.5)
        pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
    return model, X, y


def classification(n=40, p=2, classes=3, h=(0.2, 0.05), seed=6, **settings):
    """Soft tree for classes that follow the first input."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, p))
    y = np.minimum((X[:, 0] * classes).astype(int), classes - 1)
    y = np.where(rng.random(n) < 0.2, rng.integers(classes, size=n), y)
    with pm.Model() as model:
        prob = pmt.SoftDecisionTree("p", X, y, h=h, **settings)
        pm.Categorical("y", p=prob, observed=y)
    return model, X, y


def scaled(X):
    """Columns on [0, 1]."""
    return (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))


def all_topologies(leaves):
    """Every topology with so many leaves."""
    if leaves == 1:
        return ["L"]
    return [
        f"S{left}{right}"
        for k in range(1, leaves)
        for left in all_topologies(k)
        for right in all_topologies(leaves - k)
    ]


def paths(label):
    """For each leaf in preorder, its (split, goes left) pairs from the root: by recursion."""
    out, counter = [], {"S": 0}

    def walk(at, path):
        if label[at] == "L":
            out.append(path)
            return at + 1
        split = counter["S"]
        counter["S"] += 1
        at = walk(at + 1, [*path, (split, True)])
        return walk(at, [*path, (split, False)])

    walk(0, [])
    return out


def leaf_shares(label, x, delta, tau, h):
    """(n, L) products of gates along paths, eq. 4-5 as they stand."""
    gates = 1.0 / (1.0 + np.exp(-(x @ np.asarray(delta).T - tau) / h))
    return np.stack(
        [
            np.prod([gates[:, s] if left else 1.0 - gates[:, s] for s, left in path], axis=0)
            * np.ones(len(x))
            for path in paths(label)
        ],
        axis=1,
    )


def posterior_of(model):
    """Compiled functions of a model."""
    return TopologyModel(model)
