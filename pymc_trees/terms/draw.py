"""Leaf values and Gaussian vectors given everything else: marginals and draws.

Given the trees, rows are ``y = B u + G C v + e`` with ``e_i ~ N(0, 1 / w_i)``, leaf values
``u ~ N(m, diag(s^2))``, vectors ``v ~ N(b, Q^-1)`` and scales ``C = diag(c)``. With

    P = B'WB + diag(s^-2) = L L',  X = L^-1 B'WG,  x = L^-1 (B'Wy + s^-2 m),
    M = G'WG - X'X,                r = G'Wy - X'x

u integrates out: up to a constant, ``log p(y | v) = -v' C M C v / 2 + v' C r``. So, v integrated
out as well, up to a constant and with H = C M C + Q and h = C r + Q b,

    log p(y | hyperparameters) = log_norm - b'Q b / 2 - log det(H) / 2 + h' H^-1 h / 2
    v | y ~ N(H^-1 h, H^-1),  u | v, y ~ N(L'^-1 (x - X C v), P^-1)

in which the hyperparameters enter Q, b, log_norm and c alone.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, block_diag, cho_solve, cholesky, eigh, solve_triangular

MOST_DECOMPOSED = 60
"""Coefficients whose cross products are decomposed: beyond, seven factorisations are faster."""


class Vectors(NamedTuple):
    """Prior and scale of the vectors, one after the other."""

    mean: np.ndarray
    """(K,) b."""
    precision: np.ndarray
    """(K, K) Q, or (K,) its diagonal."""
    log_norm: float
    scale: np.ndarray
    """(K,) c."""


class Marginal(NamedTuple):
    """The rows as a function of the vectors, leaf values integrated out."""

    lower: np.ndarray
    """(p, p) L."""
    X: np.ndarray
    """(p, K)"""
    x: np.ndarray
    """(p,)"""
    M: np.ndarray
    """(K, K)"""
    r: np.ndarray
    """(K,)"""


def integrate_leaves(gram, cross, rhs, mean, sd, columns, columns_rhs) -> Marginal:
    """Leaf values integrated out.

    Parameters
    ----------
    gram : (p, p)
        B'WB; the lower triangle is used, and overwritten.
    cross, rhs : (p, K), (p,)
        B'WG and B'Wy.
    mean, sd : (p,)
        Of the leaf values' prior.
    columns, columns_rhs : (K, K), (K,)
        G'WG and G'Wy.
    """
    gram.flat[:: len(gram) + 1] += sd**-2.0
    lower = cholesky(gram, lower=True, overwrite_a=True, check_finite=False)
    both = np.column_stack([cross, rhs + sd**-2.0 * mean])
    both = solve_triangular(lower, both, lower=True, overwrite_b=True, check_finite=False)
    X, x = both[:, :-1], both[:, -1]
    return Marginal(lower, X, x, columns - X.T @ X, columns_rhs - X.T @ x)


def joined(parts: list[Vectors]) -> Vectors:
    """Independent vectors, one after the other."""
    if len(parts) == 1:
        return parts[0]
    if all(one.precision.ndim == 1 for one in parts):
        precision = np.concatenate([one.precision for one in parts])
    else:
        precision = block_diag(*(_dense(one.precision) for one in parts))
    mean, scale = (np.concatenate([one[k] for one in parts]) for k in (0, 3))
    return Vectors(mean, precision, sum(one.log_norm for one in parts), scale)


def _dense(precision):
    return np.diag(precision) if precision.ndim == 1 else precision


def _times(precision, vector):
    return precision * vector if precision.ndim == 1 else precision @ vector


def without(M, r, others, vectors: Vectors) -> tuple[np.ndarray, np.ndarray]:
    """M and r of some coefficients, the others integrated out under their own prior.

    Parameters
    ----------
    others : (K,) bool
        Coefficients to integrate out.
    vectors : Vectors
        Theirs: K' of them.
    """
    if not others.any():
        return M, r
    c = vectors.scale
    H = M[np.ix_(others, others)] * c[:, None] * c + _dense(vectors.precision)
    h = c * r[others] + _times(vectors.precision, vectors.mean)
    between = M[np.ix_(others, ~others)] * c[:, None]
    factor = cholesky(H, lower=True, check_finite=False)
    solved = cho_solve((factor, True), np.column_stack([between, h]), check_finite=False)
    kept = M[np.ix_(~others, ~others)] - between.T @ solved[:, :-1]
    return kept, r[~others] - between.T @ solved[:, -1]


class Evidence:
    """Log p(y | hyperparameters) of some vectors, up to a constant; the rest is integrated out.

    One eigendecomposition of M makes an evaluation O(K) where the prior is independent with one
    sd, one mean and one scale. Of many coefficients it costs more than it saves.
    """

    def __init__(self, M: np.ndarray, r: np.ndarray):
        self.M, self.r = M, r
        self._spectrum: tuple | None = None

    def __call__(self, vectors: Vectors) -> float:
        """Value for a prior and a scale; -inf where it is not a number."""
        mean, Q, log_norm, c = vectors
        if not (np.isfinite(c).all() and np.isfinite(Q).all() and np.isfinite(mean).all()):
            return -np.inf
        if Q.size <= MOST_DECOMPOSED and Q.ndim == 1 and _same(Q) and _same(c) and _same(mean):
            values, vectors_r, vectors_1 = self._decomposed()
            H = c[0] ** 2 * values + Q[0]
            h = c[0] * vectors_r + Q[0] * mean[0] * vectors_1
            if not (H > 0).all():
                return -np.inf
            quadratic = Q.size * Q[0] * mean[0] ** 2
            return log_norm + 0.5 * (np.sum(h**2 / H) - np.sum(np.log(H)) - quadratic)
        H = self.M * c[:, None] * c + _dense(Q)
        h = c * self.r + _times(Q, mean)
        try:
            lower = cholesky(H, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return -np.inf
        z = solve_triangular(lower, h, lower=True, check_finite=False)
        determinant = np.sum(np.log(np.diag(lower)))
        return log_norm + 0.5 * (z @ z - mean @ _times(Q, mean)) - determinant

    def _decomposed(self):
        if self._spectrum is None:
            values, vectors = eigh(self.M, check_finite=False)
            self._spectrum = np.maximum(values, 0.0), vectors.T @ self.r, vectors.sum(axis=0)
        return self._spectrum


def _same(numbers) -> bool:
    return bool(np.all(numbers == numbers[0]))


def draw_vectors(rng, marginal: Marginal, vectors: Vectors) -> np.ndarray:
    """Vectors given the rows, leaf values integrated out."""
    c = vectors.scale
    H = marginal.M * c[:, None] * c + _dense(vectors.precision)
    h = c * marginal.r + _times(vectors.precision, vectors.mean)
    lower = cholesky(H, lower=True, overwrite_a=True, check_finite=False)
    z = solve_triangular(lower, h, lower=True, check_finite=False)
    z += rng.standard_normal(z.size)
    return solve_triangular(lower, z, lower=True, trans="T", check_finite=False)


def draw_leaves(rng, marginal: Marginal, scaled: np.ndarray) -> np.ndarray:
    """Leaf values given the rows and the scaled vectors C v."""
    z = marginal.x - marginal.X @ scaled
    z += rng.standard_normal(z.size)
    return solve_triangular(marginal.lower, z, lower=True, trans="T", check_finite=False)
