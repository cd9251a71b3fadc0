"""The same posterior by dynamic programming over (rows, depth), listing no tree.

Below a node of rows ``mask`` at depth d, with m(mask) the leaf marginal,

    Z(mask, d) = (1 - p_d) m(mask) + p_d sum_s P(s) Z(left_s, d+1) Z(right_s, d+1)

(just ``m(mask)`` if the node has no valid split).  ``Z(all rows, 0)`` is the evidence.
The terms divided by Z are the posterior probabilities ``w_leaf`` and ``w_s`` of what
happens at the node given that it is reached, independently of the rest of the tree,
so every summary follows by conditioning on them:

    same leaf:  C = w_leaf 1 1' + sum_s w_s (C_left + C_right)
    leaves:     L = w_leaf delta_1 + sum_s w_s conv(L_left, L_right)
    depth:      F(k) = w_leaf + sum_s w_s F_left(k-1) F_right(k-1),  F(k) = P(height <= k)
    values:     E[f_i^r] = w_leaf E[mu^r | leaf] + sum_s w_s E[f_i^r in i's child]
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from .splits import Splits, log_leaf_and_split, rows_of


class DynamicPosterior(NamedTuple):
    """``mean`` and ``sd`` are None unless ``leaf_moments`` was given."""

    log_evidence: float
    pair_probabilities: np.ndarray
    leaf_counts: dict
    depths: dict
    mean: np.ndarray | None
    sd: np.ndarray | None


class _Below(NamedTuple):
    log_z: float
    pairs: np.ndarray
    counts: np.ndarray
    heights: np.ndarray
    first: np.ndarray
    second: np.ndarray


def dynamic_posterior(
    X,
    log_marginal,
    alpha,
    beta,
    split_prior=None,
    cuts=None,
    max_depth=None,
    leaf_moments=None,
    kinds=None,
):
    """Exact posterior summaries of one tree without enumerating trees.

    Parameters are those of `enumerate_trees` and `posterior`; ``leaf_moments`` as in
    `row_moments`.

    Returns
    -------
    DynamicPosterior
    """
    splits = Splits(X, split_prior, cuts, kinds)
    n = splits.n
    moments = leaf_moments or (lambda rows: (0.0, 0.0))
    shape = np.shape(moments(frozenset([0]))[0])
    memo = {}

    def below(mask, depth):
        if (mask, depth) in memo:
            return memo[mask, depth]
        options = splits(mask)
        log_leaf, log_split = (
            log_leaf_and_split(alpha, beta, depth) if options else (0.0, -math.inf)
        )
        if log_split == -math.inf or (max_depth is not None and depth >= max_depth):
            options = []
        children = [(below(s.left, depth + 1), below(s.right, depth + 1)) for s in options]
        leaf = frozenset(rows_of(mask))
        terms = [log_leaf + log_marginal(leaf)] + [
            log_split + s.log_prob + a.log_z + b.log_z for s, (a, b) in zip(options, children)
        ]
        log_z = float(logsumexp(terms))
        w = np.exp(np.array(terms) - log_z) if log_z > -math.inf else np.zeros(len(terms))

        inside = np.zeros(n)
        inside[list(leaf)] = 1.0
        pairs = w[0] * np.outer(inside, inside)
        counts = np.zeros(n + 1)
        counts[1] = w[0]
        heights = np.full(n, w[0])
        mean, variance = (np.asarray(v, float) for v in moments(leaf))
        first = w[0] * np.multiply.outer(inside, mean)
        second = w[0] * np.multiply.outer(inside, variance + mean**2)
        for weight, (a, b) in zip(w[1:], children):
            pairs += weight * (a.pairs + b.pairs)
            counts += weight * np.convolve(a.counts, b.counts)[: n + 1]
            heights[1:] += weight * a.heights[:-1] * b.heights[:-1]
            first += weight * (a.first + b.first)
            second += weight * (a.second + b.second)
        memo[mask, depth] = _Below(log_z, pairs, counts, heights, first, second)
        return memo[mask, depth]

    root = below(splits.root, 0)
    mean = sd = None
    if leaf_moments is not None:
        mean, sd = root.first, np.sqrt(np.maximum(root.second - root.first**2, 0.0))
        assert mean.shape == (n, *shape)
    depth_law = np.diff(root.heights, prepend=0.0)
    return DynamicPosterior(
        root.log_z,
        root.pairs,
        {k: float(v) for k, v in enumerate(root.counts) if v > 0},
        {k: float(v) for k, v in enumerate(depth_law) if v > 0},
        mean,
        sd,
    )
