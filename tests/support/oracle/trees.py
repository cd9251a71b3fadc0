"""Every tree on a tiny design, one by one, with its exact prior probability."""

import math
from typing import NamedTuple

from .splits import Splits, log_leaf_and_split, rows_of


class TreeInfo(NamedTuple):
    """What a tree looks like.

    structure : nested tuple
        ``()`` for a leaf, ``(column, (a, b), left, right)`` for a split, where
        ``a < b`` are the consecutive node values on either side of the cut.
        Two trees are the same state exactly when their structures are equal.
    n_leaves, depth : int
        ``depth`` is that of the deepest leaf (0 for a stump).
    root_column : int or None
    root_gap : (float, float) or None
    split_counts : tuple of int
        How many splits use each column.
    """

    structure: tuple
    n_leaves: int
    depth: int
    root_column: int | None
    root_gap: tuple | None
    split_counts: tuple


def partition_of(masks):
    """Canonical partition (frozenset of frozensets of rows) of leaf bit masks."""
    return frozenset(frozenset(rows_of(m)) for m in masks)


def enumerate_trees(X, alpha, beta, split_prior=None, cuts=None, max_depth=None):
    """List every tree (gap-collapsed structure) once.

    Parameters
    ----------
    X : array (n, p)
    alpha, beta : float
        A node at depth d with a valid split is split with probability
        ``alpha * (1 + d) ** -beta``; one without is a leaf with probability 1.
    split_prior, cuts
        See `Splits`.
    max_depth : int, optional
        Leave out the trees deeper than this.  Nothing is renormalised: the prior
        mass that remains is P(depth <= max_depth).

    Returns
    -------
    list of (log_prior, partition, TreeInfo)
        ``log_prior`` is the sum over internal nodes of ``log p_d + log P(column,
        gap)`` and over leaves with a valid split of ``log(1 - p_d)``.  Trees of
        prior probability zero are left out.
    """
    splits = Splits(X, split_prior, cuts)
    memo = {}

    def subtrees(mask, depth):
        """(log prior, leaf masks, structure, height, split counts) below a node."""
        if (mask, depth) in memo:
            return memo[mask, depth]
        options = splits(mask)
        log_leaf, log_split = log_leaf_and_split(alpha, beta, depth) if options else (0.0, 0.0)
        found = []
        if log_leaf > -math.inf:
            found.append((log_leaf, (mask,), (), 0, (0,) * splits.p))
        too_deep = max_depth is not None and depth >= max_depth
        if options and log_split > -math.inf and not too_deep:
            for s in options:
                used = tuple(int(k == s.column) for k in range(splits.p))
                for lp, lm, ls, lh, lc in subtrees(s.left, depth + 1):
                    for rp, rm, rs, rh, rc in subtrees(s.right, depth + 1):
                        found.append(
                            (
                                log_split + s.log_prob + lp + rp,
                                lm + rm,
                                (s.column, s.gap, ls, rs),
                                1 + max(lh, rh),
                                tuple(map(sum, zip(used, lc, rc))),
                            )
                        )
        memo[mask, depth] = found
        return found

    trees = []
    for log_prior, masks, structure, height, counts in subtrees(splits.root, 0):
        column, gap = structure[:2] if structure else (None, None)
        info = TreeInfo(structure, len(masks), height, column, gap, counts)
        trees.append((log_prior, partition_of(masks), info))
    return trees
