"""Which topology is visited next? The utility of eq. 10 and its terms, as logs."""

import math

import numpy as np

LOOK_AHEAD = 1000
"""Number T_a of future samples in eq. 71 (Rainforth 2018)."""


def exploitation(log_mass, log_variance, kappa: float = 0.0) -> np.ndarray:
    """``tau / max tau`` with ``tau^2 = Z^2 + (1 + kappa) sigma^2`` (eq. 66-70).

    Parameters
    ----------
    log_mass : (M,) array
        Log of Z p(m).
    log_variance : (M,) array
        Log of the variance of the importance weights, with the factor p(m)^2.
    """
    log_tau = 0.5 * np.logaddexp(2.0 * np.asarray(log_mass), math.log1p(kappa) + log_variance)
    return np.exp(log_tau - log_tau.max())


def exploration(threshold: float, mean, sd) -> np.ndarray:
    """``rho / max rho``: probability that one of the next weights exceeds all so far (eq. 71).

    Parameters
    ----------
    threshold : float
        Largest log weight of any topology.
    mean, sd : (M,) arrays
        Of the log weights of each topology, taken as normal.
    """
    with np.errstate(divide="ignore"):
        z = np.where(sd > 0, (threshold - mean) / np.where(sd > 0, sd, 1.0), np.inf)
    above = np.array([0.5 * math.erfc(v / math.sqrt(2.0)) for v in z])
    # 1 - (1 - above)^T_a without cancellation
    with np.errstate(divide="ignore"):
        rho = -np.expm1(LOOK_AHEAD * np.log1p(-above))
    largest = rho.max()
    return rho / largest if largest > 0 else np.zeros(len(rho))


def utility(visits, tau, rho, delta: float = 0.0, beta: float = 1.0) -> np.ndarray:
    """U of eq. 10; infinite without a visit.

    Parameters
    ----------
    visits : (M,) int array
        S, visits of each topology.
    tau, rho : (M,) arrays
        From `exploitation` and `exploration`.
    delta : float in [0, 1], default 0
        Share of exploration (default of the authors' program).
    beta : float, default 1
        Optimism boost (default of the authors' program).
    """
    visits = np.asarray(visits)
    s = np.maximum(visits, 1)
    boost = beta * math.log(max(visits.sum(), 1)) / np.sqrt(s)
    return np.where(visits > 0, ((1.0 - delta) * tau + delta * rho + boost) / s, np.inf)
