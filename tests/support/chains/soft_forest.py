"""Chains of soft trees on the kernels, recorded draw by draw."""

from typing import NamedTuple

import numpy as np
from numba import njit

from pymc_trees.core.samplers.split_weights import draw_log_weights
from pymc_trees.core.soft_forest.moves import SoftProblem
from pymc_trees.core.soft_forest.prior import make_soft_prior
from pymc_trees.core.soft_forest.sweep import count_trees, screened_soft_sweeps, soft_sweeps
from pymc_trees.core.soft_forest.trees import make_soft_trees, sum_trees

KEPT = 7
"""First nodes of a tree that are recorded."""
EQUAL = np.full(5, 0.2)


class SoftChain(NamedTuple):
    """D draws of m trees at n rows."""

    size: np.ndarray
    """(D, m)"""
    column: np.ndarray
    """(D, m, KEPT)"""
    number: np.ndarray
    """(D, m, KEPT)"""
    bandwidth: np.ndarray
    """(D, m)"""
    f: np.ndarray
    """(D, n)"""


def make_chain(draws, m, n):
    shape = draws, m, KEPT
    return SoftChain(
        np.zeros((draws, m), dtype=np.int64),
        np.zeros(shape, dtype=np.int32),
        np.zeros(shape),
        np.zeros((draws, m)),
        np.zeros((draws, n)),
    )


def soft_problem(unit, m, alpha, beta, bandwidth, weights=None, hard=None, max_nodes=400):
    """Stumps and their prior; ``unit`` (p, n)."""
    p = len(unit)
    weights = np.ones(p) if weights is None else np.asarray(weights, dtype=float)
    hard = np.zeros(p, dtype=np.bool_) if hard is None else np.asarray(hard)
    prior = make_soft_prior(alpha, beta, weights, bandwidth)
    trees = make_soft_trees(m, max_nodes)
    trees.bandwidth[:] = bandwidth
    return SoftProblem(trees, np.ascontiguousarray(unit), hard, prior, max_nodes)


@njit(cache=True)
def record(problem, chain, s):
    trees = problem.trees
    for t in range(trees.size.size):
        chain.size[s, t], chain.bandwidth[s, t] = trees.size[t], trees.bandwidth[t]
        for k in range(min(KEPT, trees.size[t])):
            chain.column[s, t, k] = trees.column[t, k]
            chain.number[s, t, k] = trees.number[t, k]
    chain.f[s] = sum_trees(trees, problem.unit, problem.hard)


@njit(cache=True)
def run_soft(rng, problem, leaf, weights, n_moves, chain):
    stop_flag, counts = np.zeros(1, dtype=np.bool_), np.zeros((2, 5), dtype=np.int64)
    for s in range(len(chain.size)):
        if not soft_sweeps(rng, problem, leaf, weights, n_moves, 1, stop_flag, counts):
            raise ValueError("full")
        record(problem, chain, s)
    return counts


@njit(cache=True)
def run_screened_soft(rng, problem, leaf, screen, kept, weights, n_moves, chain):
    stop_flag, counts = np.zeros(1, dtype=np.bool_), np.zeros((2, 6), dtype=np.int64)
    for s in range(len(chain.size)):
        if not screened_soft_sweeps(
            rng, problem, leaf, screen, kept, weights, n_moves, 1, stop_flag, counts
        ):
            raise ValueError("full")
        record(problem, chain, s)
    return counts


@njit(cache=True)
def run_joint(rng, problem, leaf, concentration, shape, scale, weights, n_moves, chain, out, log_s):
    """Geweke's chain: sweep, sigma^2, split weights, new y; ``out`` rows: sigma^2, leaves.

    ``problem.prior.weights`` holds the split weights; ``log_s`` (D, p) their logs.
    """
    stop_flag, counts = np.zeros(1, dtype=np.bool_), np.zeros((2, 5), dtype=np.int64)
    n, p = leaf.r.size, concentration.size
    none, inclusion = np.empty((0, p)), np.zeros(p, dtype=np.int64)
    now = np.log(problem.prior.weights)
    for s in range(len(chain.size)):
        if not soft_sweeps(rng, problem, leaf, weights, n_moves, 1, stop_flag, counts):
            raise ValueError("full")
        record(problem, chain, s)
        total = 0.0
        for i in range(n):
            total += leaf.r[i] ** 2
        sigma2 = (scale + 0.5 * total) / rng.standard_gamma(shape + 0.5 * n)
        leaf.w[0] = 1.0 / sigma2
        for i in range(n):
            leaf.r[i] = np.sqrt(sigma2) * rng.standard_normal()
        inclusion[:] = 0
        out[s, 0] = sigma2
        out[s, 1] = count_trees(problem.trees, inclusion)[0]
        splits = inclusion.astype(np.float64)
        now = draw_log_weights(rng, now, concentration, splits, none, np.empty(0))
        total = 0.0
        for j in range(p):
            problem.prior.weights[j] = max(np.exp(now[j]), 1e-300)
            total += problem.prior.weights[j]
        problem.prior.weights[:] /= total  # whose sum the prior has as 1
        log_s[s] = now
