"""Sums of trees whose leaves hold normal coefficients: the posterior from a list of partitions.

Given the partitions of m trees, y is multivariate normal: each tree adds the covariance of its
function. `check_chain` compares a chain of steps with it.

Averages are compared in standard errors by batch means, 60 batches. At 6.0 standard errors, of a t
law with 59 degrees of freedom, one of 80 averages would fail by chance in 100,000 runs with fresh
seeds. The absolute tolerances are two to nine times the largest gap seen.
"""

from collections import defaultdict
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from support.chains import partition_code, partition_of
from support.naive.batches import batch_means, frequencies, gap, law_gap
from support.oracle import same_leaf

BATCHES, Z = 60, 6.0


NOTHING_SEEN = 1e8
"""Noise at which the posterior is the prior, to 15 digits."""


class Exact(NamedTuple):
    """Posterior of a sum of trees."""

    log_evidence: float
    law: dict
    """Of the partitions, in no order."""
    leaves: dict
    """Of the number of leaves in all trees."""
    pairs: np.ndarray
    """(n, n) probabilities of a common leaf, averaged over trees."""
    mean: np.ndarray
    second: np.ndarray
    """(n, n) second moments of f."""


def exact(prior, m, y, noise, mean, covariance_of, partition_in=lambda state: state) -> Exact:
    """`Exact`, from a list of all combinations of states of trees.

    Parameters
    ----------
    prior : dict
        Probability of each state: a partition, or what has one.
    noise : (n,) array
        Standard deviations.
    mean : (n,) array
        Prior mean of the function of one tree.
    covariance_of : callable
        From a state to the (n, n) prior covariance of the function of one tree.
    partition_in : callable
        From a state to its partition.
    """
    n = len(y)
    states, noise = list(prior), np.diag(noise**2)
    each = np.array([covariance_of(state) for state in states])
    log_prior = np.log([prior[state] for state in states])
    picks = np.array(list(combinations_with_replacement(range(len(states)), m)))
    covariance, gap_to_mean = each[picks].sum(axis=1), y - m * mean
    factor = np.linalg.cholesky(covariance + noise)
    z = np.linalg.solve(factor, np.broadcast_to(gap_to_mean[:, None], (len(picks), n, 1)))[..., 0]
    half = np.linalg.solve(factor, covariance)
    log_det = 2.0 * np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
    scores = -0.5 * ((z**2).sum(axis=1) + log_det + n * np.log(2 * np.pi))
    orders = np.where((picks == picks[:, :1]).all(axis=1), 1, 2)  # m is 1 or 2
    scores += log_prior[picks].sum(axis=1) + np.log(orders)
    means = m * mean + np.einsum("pij,pi->pj", half, z)
    seconds = covariance - np.einsum("pij,pik->pjk", half, half)
    seconds += means[:, :, None] * means[:, None, :]
    log_evidence = logsumexp(scores)
    weights = np.exp(scores - log_evidence)
    law: dict = defaultdict(float)
    leaves: dict = defaultdict(float)
    parts = [partition_in(state) for state in states]
    same = np.array([same_leaf(part, n) for part in parts])
    for pick, weight in zip(picks, weights, strict=True):
        law[frozenset(parts[k] for k in pick)] += weight
        leaves[sum(len(parts[k]) for k in pick)] += weight
    return Exact(
        log_evidence,
        dict(law),
        dict(leaves),
        np.einsum("p,pij->ij", weights, same[picks].mean(axis=1)),
        weights @ means,
        np.einsum("p,pij->ij", weights, seconds),
    )


def check_chain(model, step, draws: int, known: Exact, function, then=None) -> None:
    """Steps of PyMC leave the posterior of ``f_forest`` invariant.

    ``function`` maps (draws, n, K) outputs of the forest to (draws, n) values of f; ``then`` is
    called with f after each step.
    """
    point, [forest] = model.initial_point(), step.forests
    m, n = forest.layout.m, forest.layout.n_rows
    k = forest.layout.n_outputs
    codes, fits = np.empty((draws, m), dtype=np.int64), np.empty((draws, n, k))
    for s in range(draws):
        point, _ = step.step(point)
        fits[s] = step.states[0].forest.fit
        if then is not None:
            then(function(fits[s : s + 1])[0])
        codes[s] = np.sort(
            [partition_code(rows, n) for rows in step.states[0].forest.trees.leaf_of]
        )
    keys, shares = frequencies(codes @ np.array([1, n**n])[:m], BATCHES)
    parts = [[partition_of(key // n ** (n * t) % n**n, n) for t in range(m)] for key in keys]
    sizes = np.array([sum(map(len, part)) for part in parts])
    counts = sorted(set(sizes.tolist()))
    by_size = np.stack([shares[:, sizes == k].sum(axis=1) for k in counts], axis=1)
    same = np.array([sum(same_leaf(one, n) for one in part) / m for part in parts])
    above, f = np.triu_indices(n, 1), function(fits)
    squares = batch_means(f[:, :, None] * f[:, None, :], BATCHES).reshape(BATCHES, -1)
    found = {
        "partitions": (law_gap([frozenset(p) for p in parts], shares, known.law, draws), 0.03),
        "leaves": (law_gap(counts, by_size, known.leaves, draws), 0.03),
        "pairs": (gap(shares @ same[:, *above], known.pairs[above]), 0.03),
        "means": (gap(batch_means(f, BATCHES), known.mean), 0.05),
        "squares": (gap(squares, known.second.reshape(-1)), 0.1),
    }
    wrong = {what: one for what, (one, most) in found.items() if not one.within(Z, most)}
    assert not wrong, wrong
