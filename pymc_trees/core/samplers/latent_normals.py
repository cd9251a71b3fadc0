"""Entries of multivariate normal rows that are not observed, each drawn given all others."""

import math

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.latent.augmentations import draw_truncated


@njit(cache=True)
def draw_latent_normals(rng, rows, mean, precision, is_latent, low, high, sweeps):
    """Gibbs sweeps over the latent entries of rows, which are changed in place.

    Given the others, entry k of a row is normal with precision ``Q_kk`` and mean
    ``mean_k - sum over l != k of Q_kl (row_l - mean_l) / Q_kk``, truncated to its limits.

    Parameters
    ----------
    rows : (n, K) float64
    mean : (n, K) float64
    precision : (n or 1, K, K) float64
        Of each row, or of all.
    is_latent : (n, K) bool
    low, high : (n, K) float64
        Limits of latent entries, infinite where there are none.
    """
    n, k = rows.shape
    for i in range(n):
        Q = precision[i if precision.shape[0] > 1 else 0]
        for _ in range(sweeps):
            for j in range(k):
                if not is_latent[i, j]:
                    continue
                away = 0.0
                for other in range(k):
                    if other != j:
                        away += Q[j, other] * (rows[i, other] - mean[i, other])
                centre, root = mean[i, j] - away / Q[j, j], math.sqrt(Q[j, j])
                lowest, highest = root * (low[i, j] - centre), root * (high[i, j] - centre)
                rows[i, j] = centre + draw_truncated(rng, lowest, highest) / root
