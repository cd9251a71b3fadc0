"""The prior over partitions whose leaves remember the columns of the splits above them."""

import math

from .splits import Splits, log_leaf_and_split, rows_of


def path_prior(X, below, alpha, beta, split_prior=None, cuts=None, kinds=None):
    """Prior probability of every partition into leaves with their paths.

    The recursion of `partition_prior`, with the path of the node beside its depth.

    Parameters
    ----------
    below : callable
        ``(path, column)`` to the path of the children of a node that is split; None is the root's.

    Returns
    -------
    dict : frozenset of (frozenset of rows, path) -> probability
    """
    splits, memo = Splits(X, split_prior, cuts, kinds), {}

    def law(mask, depth, path):
        if (mask, depth, path) in memo:
            return memo[mask, depth, path]
        options = splits(mask)
        log_leaf, log_split = (
            log_leaf_and_split(alpha, beta, depth) if options else (0.0, -math.inf)
        )
        out = {frozenset([(frozenset(rows_of(mask)), path)]): math.exp(log_leaf)}
        for s in options:
            here, then = math.exp(log_split + s.log_prob), below(path, s.column)
            for left, p_left in law(s.left, depth + 1, then).items():
                for right, p_right in law(s.right, depth + 1, then).items():
                    both = left | right
                    out[both] = out.get(both, 0.0) + here * p_left * p_right
        memo[mask, depth, path] = {key: p for key, p in out.items() if p > 0}
        return memo[mask, depth, path]

    return law(splits.root, 0, None)
