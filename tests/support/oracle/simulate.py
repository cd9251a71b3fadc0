"""Draw trees from the prior as a computer would: real cuts, no collapsing.

Shares no code with the enumeration, so that one can check the other.  A tree here is
``None`` for a leaf or ``(column, cut, left, right)`` with a real cut.
"""

import numpy as np


def draw_tree(rng, X, alpha, beta, split_prior=None, cuts=None):
    """One tree from the prior.

    Parameters
    ----------
    rng : numpy.random.Generator
    X, alpha, beta, split_prior, cuts
        As in `enumerate_trees`.

    Returns
    -------
    nested tuple, see the module docstring
    """
    X = np.asarray(X, dtype=float)
    weights = np.ones(X.shape[1]) if split_prior is None else np.asarray(split_prior, float)

    def available(data, j):
        low, high = data[:, j].min(), data[:, j].max()
        return [c for c in cuts[j] if low <= c < high]

    def grow(data, depth):
        if cuts is None:
            usable = data.max(axis=0) > data.min(axis=0)
        else:
            usable = np.array([len(available(data, j)) > 0 for j in range(X.shape[1])])
        chances = weights * usable
        if chances.sum() == 0 or rng.random() >= alpha * (1 + depth) ** (-beta):
            return None
        j = int(rng.choice(len(chances), p=chances / chances.sum()))
        if cuts is None:
            cut = rng.uniform(data[:, j].min(), data[:, j].max())
        else:
            cut = rng.choice(available(data, j))
        left = data[:, j] <= cut
        return (j, float(cut), grow(data[left], depth + 1), grow(data[~left], depth + 1))

    return grow(X, 0)


def structure_of(tree, X):
    """Gap-collapsed structure and partition of a tree with real cuts.

    The bridge from a sampler's tree to the oracle: the results are equal to
    ``TreeInfo.structure`` and the partition of the tree in `enumerate_trees`.

    Raises
    ------
    ValueError
        If a split leaves a child with no training row (no such tree has prior mass).
    """
    X = np.asarray(X, dtype=float)
    leaves = []

    def walk(node, rows):
        if node is None:
            leaves.append(frozenset(int(i) for i in rows))
            return ()
        j, cut, left, right = node
        goes_left = X[rows, j] <= cut
        if goes_left.all() or not goes_left.any():
            raise ValueError(f"cut {cut} of column {j} leaves a child empty of {rows}")
        low, high = rows[goes_left], rows[~goes_left]
        gap = (float(X[low, j].max()), float(X[high, j].min()))
        return (j, gap, walk(left, low), walk(right, high))

    structure = walk(tree, np.arange(len(X)))
    return structure, frozenset(leaves)


def draw_values(rng, tree, X, mean, sd):
    """Draw leaf values N(mean, sd^2) and return the tree's value at each row (n,)."""
    values = np.empty(len(X))
    for leaf in structure_of(tree, X)[1]:
        values[list(leaf)] = rng.normal(mean, sd)
    return values
