"""The additive part of a function of rows, and the interaction of two columns.

Both are least squares: f on piecewise linear functions of one column each, then what is left on
products of such functions of the two columns, made orthogonal to the additive ones first.
"""

import numpy as np

KNOTS = 6
"""Knots of a column, at its quantiles: with fewer values than that, one for each value."""
SMALL = 1e-8
"""Directions of a basis with singular values below this share of the largest are none."""


def hats(x):
    """Piecewise linear functions of a column, one a knot, which add up to 1 everywhere."""
    knots = np.unique(np.quantile(x, np.linspace(0, 1, KNOTS)))
    return np.column_stack([np.interp(x, knots, unit) for unit in np.eye(len(knots))])


def orthonormal(basis):
    """Orthonormal columns with the same span."""
    left, values, _ = np.linalg.svd(basis, full_matrices=False)
    return left[:, values > SMALL * values[0]]


def additive(X):
    """Orthonormal basis (rows, functions) of sums of functions of one column."""
    return orthonormal(np.hstack([hats(x) for x in X.T]))


def interaction(X, pair):
    """Orthonormal basis of functions of two columns that are orthogonal to every sum."""
    first, second = (hats(X[:, j]) for j in pair)
    products = (first[:, :, None] * second[:, None, :]).reshape(len(X), -1)
    products = products / np.linalg.norm(products)
    sums = additive(X)
    rest = products - sums @ (sums.T @ products)
    left, values, _ = np.linalg.svd(rest, full_matrices=False)
    return left[:, values > SMALL]


def project(f, basis):
    """The part of draws (chains, draws, rows) in the span of a basis."""
    return (np.asarray(f, float) @ basis) @ basis.T
