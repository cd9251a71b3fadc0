"""From chains to numbers.

An effective sample size tells nothing about a chain that sits on a wrong tree: leaf values and
sigma move there as freely as on a right one. So a hypercube chain *counts* only when

- its mean fit is within 0.75 sd, root mean square, of the true function, where sd is that of the
  noise under a right tree, sqrt(nu lambda / (nu + n)) (the prior keeps it far above 0.01). Vertices
  whose values differ by less than about 1.5 sd may share a leaf; a wrong merger costs far more;
- it has at most a quarter more leaves than vertices.

It has *found* the tree when the same is true of the last 100 iterations of its warm-up.
"""

import arviz as az
import numpy as np

from .chain import LAST
from .model import noise_prior

LEAVES, ERROR = 1.25, 0.75


def ess(draws):
    """ESS of the mean of (chains, draws); all draws of a constant count as one."""
    if np.ptp(draws) == 0:
        return 1.0
    return float(az.ess(draws, method="mean", chain_axis=0, draw_axis=1))


def rhat(draws):
    """Rank-normalised R-hat of (chains, draws); NaN for a constant."""
    if np.ptp(draws) == 0:
        return float("nan")
    if (np.ptp(draws, axis=1) == 0).all():
        return float("inf")  # constants that differ
    return float(az.rhat(draws, chain_axis=0, draw_axis=1))


def is_right(leaves, error, D):
    """Whether mean leaves and error of the mean fit, in noise sd, are those of a right tree."""
    return leaves <= LEAVES * 2**D and error <= ERROR


def error_of(fit, data):
    """Root mean square distance from the true function, in sd of the noise under a right tree."""
    shape, scale = noise_prior(data.y)
    sd = np.sqrt(2 * scale / (2 * shape + data.y.size))
    return float(np.sqrt(np.mean((fit - data.f) ** 2)) / sd)


def chain_numbers(record, task, data):
    """Numbers of one chain."""
    kept, last = slice(task.warmup, None), slice(max(0, task.warmup - LAST), task.warmup)
    seconds = record.seconds.sum()
    one = {
        "leaves": float(record.leaves[kept].mean()),
        "leaves_warm": float(record.leaves[last].mean()),
        "ess": ess(record.log_likelihood[None, kept]),
        "ess_leaves": ess(record.leaves[None, kept]),
        "sigma": float(record.sigma[kept].mean()),
        "log_likelihood": float(record.log_likelihood[kept].mean()),
        "test_mse": float(record.test_mse[len(record.test_mse) // 2 :].mean()),
        "seconds": float(seconds),
        "ms": float(1e3 * seconds / record.seconds.size),
    }
    one["ess_per_second"] = one["ess"] / seconds
    if data.f is not None:
        one["error"], one["error_warm"] = (error_of(f, data) for f in (record.fit, record.fit_warm))
    return one


def group_numbers(records, task):
    """Numbers of the chains of one sampler on one data set, taken together."""
    kept = slice(task.warmup, None)
    log_likelihood = np.stack([r.log_likelihood[kept] for r in records])
    leaves = np.stack([r.leaves[kept] for r in records])
    return {
        "rhat": rhat(log_likelihood),
        "rhat_leaves": rhat(leaves),
        "ess_all": ess(log_likelihood),
    }
