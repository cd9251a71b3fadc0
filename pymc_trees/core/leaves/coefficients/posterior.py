"""Normal coefficients of a leaf given its rows, in units of their prior standard deviations.

With ``u_i`` the regressors of a row, ``D = diag(sd)``, ``A = sum w_i u_i u_i'``,
``c = sum w_i (r_i - u_i . mean) u_i``, ``S = I + D A D`` and ``v = D c``, coefficients
``mean + D z`` of Gaussian rows have

    p(r) = const * det(S)^(-1/2) * exp(v' S^-1 v / 2)
    z | r ~ N(S^-1 v, S^-1)

where the constant does not depend on the partition of the rows into leaves. S >= I, so its Cholesky
factor L exists for any regressors.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit


@njit(cache=True)
def factor(work, n):
    """Log of p(r) without the constant; overwrites the arguments with L and ``L^-1 v``.

    Parameters
    ----------
    work : (more than n, n or more) float64
        D A D in the lower triangle of the first n rows, v in the last row.
    """
    last = work.shape[0] - 1
    total = 0.0
    for j in range(n):
        for k in range(j):
            entry = work[j, k]
            for i in range(k):
                entry -= work[j, i] * work[k, i]
            work[j, k] = entry / work[k, k]
        square, v = 1.0 + work[j, j], work[last, j]
        for i in range(j):
            square -= work[j, i] * work[j, i]
            v -= work[j, i] * work[last, i]
        work[j, j] = np.sqrt(square)
        v /= work[j, j]
        work[last, j] = v
        total += 0.5 * v * v - np.log(work[j, j])
    return total


@njit(cache=True)
def draw(rng, work, n):
    """Replace the output of `factor` in the last row by a draw of z."""
    last = work.shape[0] - 1
    for j in range(n - 1, -1, -1):
        z = work[last, j] + rng.standard_normal()
        for i in range(j + 1, n):
            z -= work[i, j] * work[last, i]
        work[last, j] = z / work[j, j]


@njit(cache=True)
def log_row(leaf, i, output):
    """Log density of the residual of a row, of precision w."""
    w = leaf.w[0] if leaf.w.size == 1 else leaf.w[i]
    if w == 0.0:
        return 0.0
    return 0.5 * (np.log(w / (2.0 * np.pi)) - w * (leaf.r[i] - output[0]) ** 2)
