"""Runner for this package. Variants name a step method (CGM, GrowPrune, ParticleGibbs), or a model.

With "grid", cuts are at 100 quantiles of each column, as the guide advises for many rows. With
"chi", the variance of the noise has the prior of the other packages: Chipman, George and McCulloch
(2010), section 2.2.3, scaled by the residuals of a linear fit.
"""

from time import perf_counter

import numpy as np
import pymc as pm
from scipy.stats import chi2

import pymc_trees as pmt

from . import protocol
from .pymc_clock import Clock

MODELS = ("grid", "chi")
NU, BELOW = 3, 0.9
"""Degrees of freedom; prior probability that the noise is below the residual sd."""


def residual_variance(X, y):
    """Of a linear fit, or the variance of y where there are too few rows for one."""
    if len(y) <= X.shape[1] + 1:
        return y.var(ddof=1)
    columns = np.column_stack([np.ones(len(y)), X])
    residuals = y - columns @ np.linalg.lstsq(columns, y)[0]
    return residuals @ residuals / (len(y) - columns.shape[1])


def thinned(idata, thin):
    if thin == 1:
        return idata
    rows = slice(thin - 1, None, thin)
    return idata.map_over_datasets(lambda ds: ds.isel(draw=rows, missing_dims="ignore"))


def run(problem):
    before = protocol.memory_now()
    X, y = problem.X, problem.y
    clock = Clock()
    with pm.Model():
        n_cuts = 100 if problem.variant == "grid" else None
        size = {"m": problem.m, "beta": protocol.BETA} if problem.m else {}  # else the defaults
        mu = pmt.BART("mu", X, y, n_cuts=n_cuts, **size)
        if problem.variant == "chi":
            scale = residual_variance(X, y) * chi2.ppf(1 - BELOW, NU) / 2
            variance = pm.InverseGamma("variance", NU / 2, scale)
            sigma = pm.Deterministic("sigma", pm.math.sqrt(variance))
        else:
            sigma = pm.HalfNormal("sigma", y.std())
        pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
        step = None
        if problem.variant not in ("", *MODELS):
            step = [getattr(pmt, problem.variant)()]
        idata = pm.sample(
            problem.n_draws,
            tune=problem.n_warmup,
            chains=problem.chains,
            cores=1,
            step=step,
            var_names=["mu_forest", "mu", "sigma"],  # recorded, as users do
            random_seed=problem.seed,
            callback=clock,
            progressbar=False,
            compute_convergence_checks=False,
        )
        peak = protocol.memory_peak()
        idata = thinned(idata, problem.thin)
        start = perf_counter()
        f = np.empty((problem.chains, problem.kept, 0), np.float32)
        if len(problem.X_test):
            pm.set_data({"mu_X": problem.X_test})
            predictive = pm.sample_posterior_predictive(
                idata, predictions=True, var_names=["mu"], progressbar=False
            )
            f = predictive.predictions["mu"].to_numpy().astype(np.float32)
        predict = perf_counter() - start
    return protocol.Result(
        f=f,
        sigma=idata.posterior["sigma"].to_numpy(),
        seconds_compile=clock.compile,
        seconds_warmup=clock.warmup,
        seconds_sampling=clock.sampling,
        seconds_predict=predict,
        sweeps_per_step=1.0,
        bytes_before=before,
        bytes_peak=peak,
        version=getattr(pmt, "__version__", "?"),
    )


if __name__ == "__main__":
    protocol.serve(run)
