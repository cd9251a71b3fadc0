"""Exact posteriors of one tree by listing partitions, right ones and deliberately wrong ones."""

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from support import oracle as o

PROBLEMS = o.datasets()
MIXED = o.mixed_datasets()
EVERY = PROBLEMS | MIXED


class Law(NamedTuple):
    """Exact posterior of one problem with one leaf model."""

    partitions: dict
    pairs: np.ndarray
    leaf_counts: dict
    depths: dict
    mean: np.ndarray
    sd: np.ndarray


def leaf_of(problem, leaf_name):
    """Oracle's leaf model; ``flat`` for no data."""
    if leaf_name == "flat":
        return lambda rows: 0.0
    return getattr(problem, leaf_name)()


def partition_posterior(problem, leaf_name, prior=None):
    """dict partition -> posterior probability, under the problem's prior or another one."""
    leaf = leaf_of(problem, leaf_name)
    prior = o.partition_prior(problem.X, **problem.prior) if prior is None else prior
    memo = {}
    for partition in prior:
        for rows in partition:
            if rows not in memo:
                memo[rows] = leaf(rows)
    scores = {
        part: math.log(p) + math.fsum(memo[rows] for rows in part) for part, p in prior.items()
    }
    top = max(scores.values())
    total = math.fsum(math.exp(score - top) for score in scores.values())
    return {part: math.exp(score - top) / total for part, score in scores.items()}


@cache
def law(name, leaf_name):
    """`Law` of a problem of the oracle, by its name."""
    problem = EVERY[name]
    leaf = leaf_of(problem, leaf_name)
    moments = getattr(leaf, "moments", None)
    exact = o.dynamic_posterior(problem.X, leaf, leaf_moments=moments, **problem.prior)
    partitions = partition_posterior(problem, leaf_name)
    return Law(
        partitions, exact.pair_probabilities, exact.leaf_counts, exact.depths, exact.mean, exact.sd
    )


@cache
def precision_moments(name):
    """Posterior mean and sd of tau at each row, normal-gamma leaf."""
    problem = EVERY[name]
    leaf = problem.normal_gamma()
    exact = o.dynamic_posterior(
        problem.X, leaf, leaf_moments=leaf.precision_moments, **problem.prior
    )
    return exact.mean, exact.sd


MISTAKES = {
    "alpha": "split probability 10% too small",
    "beta": "beta larger by 0.2",
    "depth": "the depth of every node taken as 0",
    "alike": "a node without a valid split pays 1 - p as if it had one",
    "gaps": "every gap between values equally likely, not by its width",
    "columns": "a column has probability w_j, not w_j over the weights that vary in the node",
}


def wrong_partition_prior(problem, mistake=None):
    """Law of the partition under a prior with one mistake of `MISTAKES`, normalised.

    Written apart from the oracle; without a mistake both are equal.
    """
    X = problem.X
    n, p = X.shape
    weights = np.asarray(problem.prior.get("split_prior", np.ones(p)), dtype=float)
    weights = weights / weights.sum()
    cuts = problem.prior.get("cuts")
    alpha = problem.prior["alpha"] * (0.9 if mistake == "alpha" else 1.0)
    beta = problem.prior["beta"] + (0.2 if mistake == "beta" else 0.0)

    def options(rows):
        """(column, [(left, right, probability)]) of the columns that vary."""
        found = []
        for j in range(p):
            values = sorted({X[i, j] for i in rows})
            widths = [
                b - a if cuts is None else sum(a <= c < b for c in cuts[j])
                for a, b in zip(values, values[1:])
            ]
            if mistake == "gaps":
                widths = [float(w > 0) for w in widths]
            if sum(widths) == 0 or weights[j] == 0:
                continue
            sides = []
            for a, w in zip(values, widths):
                left = frozenset(i for i in rows if X[i, j] <= a)
                sides.append((left, rows - left, w / sum(widths)))
            found.append((j, sides))
        return found

    memo = {}

    def below(rows, depth):
        if (rows, depth) in memo:
            return memo[rows, depth]
        here = options(rows)
        split = alpha * (1.0 + (0 if mistake == "depth" else depth)) ** -beta
        open_ = bool(here) or mistake == "alike"
        out = {frozenset([rows]): 1.0 - split if open_ else 1.0}
        total = 1.0 if mistake == "columns" else sum(weights[j] for j, _ in here)
        for j, sides in here:
            for left, right, share in sides:
                for a, pa in below(left, depth + 1).items():
                    for b, pb in below(right, depth + 1).items():
                        mass = split * weights[j] / total * share * pa * pb
                        out[a | b] = out.get(a | b, 0.0) + mass
        memo[rows, depth] = out
        return out

    found = below(frozenset(range(n)), 0)
    total = math.fsum(found.values())
    return {part: mass / total for part, mass in found.items() if mass > 0}
