"""Gaussian rows under a soft tree, its leaf values integrated out.

With ``phi`` the (L, n) weights of L leaves, ``r_i | mu ~ N(sum_l phi_li mu_l, 1 / w_i)`` and
``mu_l ~ N(mean, sd^2)``: let ``d = r - mean`` (the weights of a row add up to 1), W = diag(w) and

    G = phi W phi',        b = phi W d,        A = I + sd^2 G.

Completing the square in ``mu = mean + sd z`` gives, as in Linero and Yang (2018, section 3.2),

    log p(r) = const - log|A| / 2 + sd^2 b' A^-1 b / 2
    mu | r ~ N(mean + sd^2 A^-1 b, sd^2 A^-1)

where ``const = sum_i log N(r_i; mean, 1 / w_i)`` does not depend on the tree.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.leaves.nonconjugate.proposal import solve_lower, solve_upper
from pymc_trees.core.soft_forest.trees import Links, make_links


@by_pointer
class SoftRows(NamedTuple):
    """Data of one tree, and the prior of its leaf values."""

    mean: float
    sd: float
    r: np.ndarray
    """(n,) target of the tree."""
    w: np.ndarray
    """(n,) precision of each row, or (1,) of all."""


class GramSystem(NamedTuple):
    """G, b and A of a tree, with capacity for L leaves."""

    phi: np.ndarray
    """(L, n) weights of the leaves."""
    gram: np.ndarray
    """(L, L) G."""
    rhs: np.ndarray
    """(L,) b."""
    factor: np.ndarray
    """(L, L) lower factor of A."""
    half: np.ndarray
    """(L,) the solution of ``factor half = sd b``."""


@njit(cache=True)
def make_gram_system(leaves, n):
    """Allocate arrays for a number of leaves."""
    return GramSystem(
        np.empty((leaves, n)),
        np.empty((leaves, leaves)),
        np.empty(leaves),
        np.empty((leaves, leaves)),
        np.empty(leaves),
    )


@njit(cache=True)
def dot(x, y):
    """Sum of products, in four partial sums: an addition need not wait for the previous one."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    body = x.size - x.size % 4
    for i in range(0, body, 4):
        a += x[i] * y[i]
        b += x[i + 1] * y[i + 1]
        c += x[i + 2] * y[i + 2]
        d += x[i + 3] * y[i + 3]
    for i in range(body, x.size):
        a += x[i] * y[i]
    return (a + b) + (c + d)


@njit(cache=True)
def weigh_row(phi, w, out):
    """Write ``w phi``."""
    if w.size == 1:
        for i in range(phi.size):
            out[i] = w[0] * phi[i]
    else:
        for i in range(phi.size):
            out[i] = w[i] * phi[i]


@njit(cache=True)
def fill_gram(system, n_leaves, rows, centred, weighed):
    """Write G and b of a tree from its weights.

    Parameters
    ----------
    centred : (n,) float64
        d.
    weighed : (n,) float64
        Overwritten.
    """
    phi, gram, rhs = system.phi, system.gram, system.rhs
    for a in range(n_leaves):
        weigh_row(phi[a], rows.w, weighed)
        rhs[a] = dot(weighed, centred)
        for b in range(a + 1):
            gram[a, b] = gram[b, a] = dot(weighed, phi[b])


@njit(cache=True)
def _factorise(a):
    """Overwrite a matrix, no less than the identity, with its lower Cholesky factor.

    Pivots are floored at 1, against rounding.
    """
    n = a.shape[0]
    for i in range(n):
        for j in range(i + 1):
            total = a[i, j]
            for k in range(j):
                total -= a[i, k] * a[j, k]
            a[i, j] = math.sqrt(max(total, 1.0)) if i == j else total / a[j, j]


@njit(cache=True)
def log_marginal(system, n_leaves, sd):
    """``log p(r)`` without its constant; writes the factor of A."""
    factor, half = system.factor[:n_leaves, :n_leaves], system.half[:n_leaves]
    for a in range(n_leaves):
        half[a] = sd * system.rhs[a]
        for b in range(n_leaves):
            factor[a, b] = sd * sd * system.gram[a, b] + (1.0 if a == b else 0.0)
    _factorise(factor)
    solve_lower(factor, half, half)
    total = 0.0
    for a in range(n_leaves):
        total += 0.5 * half[a] * half[a] - math.log(factor[a, a])
    return total


@njit(cache=True)
def draw_leaf_values(rng, system, n_leaves, rows, out):
    """Write values of the leaves from their conditional, after `log_marginal`."""
    factor, half = system.factor[:n_leaves, :n_leaves], system.half[:n_leaves]
    for a in range(n_leaves):
        half[a] += rng.standard_normal()
    solve_upper(factor, half, out[:n_leaves])
    for a in range(n_leaves):
        out[a] = rows.mean + rows.sd * out[a]


# ---------------------------------------------------------------------------------------- Workspace


LEAVES = 8
"""Initial capacity in leaves."""


class SoftWork(NamedTuple):
    """Arrays for the visited tree and a draft of it."""

    links: Links
    """Of the current tree."""
    column: np.ndarray
    """(R + 2,) int32: of the draft."""
    number: np.ndarray
    """(R + 2,) float64: of the draft."""
    current: GramSystem
    draft: GramSystem
    """Its ``phi`` has only the leaves that differ, below the changed node."""
    path: np.ndarray
    """(L + 1, n) weights along a path."""
    centred: np.ndarray
    """(n,) target of the tree minus the prior mean of a leaf."""
    weighed: np.ndarray
    """(n,)"""
    values: np.ndarray
    """(L,) leaf values."""


@njit(cache=True)
def make_soft_work(room, leaves, n):
    """Workspace for trees with a number of nodes, and initially a number of leaves."""
    return SoftWork(
        make_links(room + 2),
        np.empty(room + 2, dtype=np.int32),
        np.empty(room + 2),
        make_gram_system(leaves, n),
        make_gram_system(leaves, n),
        np.empty((leaves + 1, n)),
        np.empty(n),
        np.empty(n),
        np.empty(leaves),
    )


@njit(cache=True)
def _copy_system(source, target):
    leaves = source.rhs.size
    target.phi[:leaves] = source.phi
    target.gram[:leaves, :leaves] = source.gram
    target.rhs[:leaves] = source.rhs


@njit(cache=True)
def with_capacity(work, leaves):
    """Workspace with capacity for a number of leaves; the same object if large enough."""
    if leaves <= work.values.size:
        return work
    n = work.centred.size
    more = make_soft_work(work.column.size - 2, max(leaves, 2 * work.values.size), n)
    _copy_system(work.current, more.current)
    more.values[: work.values.size] = work.values
    current, draft, path, values = more.current, more.draft, more.path, more.values
    links, column, number = work.links, work.column, work.number
    return SoftWork(links, column, number, current, draft, path, work.centred, work.weighed, values)
