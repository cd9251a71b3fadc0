"""The prior over partitions: trees with the same leaves counted as one."""

import math

import numpy as np

from .splits import Splits, log_leaf_and_split, rows_of


def partition_prior(X, alpha, beta, split_prior=None, cuts=None, max_depth=None, kinds=None):
    """Prior probability of every partition of the rows into leaves.

    Does not list the trees: the law of the leaves below a node is

        Q(mask, d) = (1 - p_d) [{mask}] + p_d sum_s P(s) Q(left_s, d+1) x Q(right_s, d+1)

    where ``x`` joins a partition of the left child to one of the right child, and
    equal partitions are added up at every step.

    Returns
    -------
    dict : partition (frozenset of frozensets of rows) -> probability
    """
    splits = Splits(X, split_prior, cuts, kinds)
    memo = {}

    def law(mask, depth):
        if (mask, depth) in memo:
            return memo[mask, depth]
        options = splits(mask)
        log_leaf, log_split = (
            log_leaf_and_split(alpha, beta, depth) if options else (0.0, -math.inf)
        )
        out = {frozenset([frozenset(rows_of(mask))]): math.exp(log_leaf)}
        if max_depth is None or depth < max_depth:
            for s in options:
                here = math.exp(log_split + s.log_prob)
                for left, p_left in law(s.left, depth + 1).items():
                    for right, p_right in law(s.right, depth + 1).items():
                        both = left | right
                        out[both] = out.get(both, 0.0) + here * p_left * p_right
        memo[mask, depth] = {key: p for key, p in out.items() if p > 0}
        return memo[mask, depth]

    return law(splits.root, 0)


def collapse_trees(trees):
    """Add up the prior of listed trees by partition (the other route)."""
    out = {}
    for log_prior, partition, *_ in trees:
        out[partition] = out.get(partition, 0.0) + math.exp(log_prior)
    return out


def same_leaf(partition, n):
    """(n, n) array of 0/1: do rows i and j share a leaf of the partition?"""
    matrix = np.zeros((n, n))
    for leaf in partition:
        rows = np.array(sorted(leaf))
        matrix[np.ix_(rows, rows)] = 1.0
    return matrix
