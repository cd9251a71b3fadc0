"""Runner for pymc-bart. Its default updates a tenth of the trees per step.

The variant ``all`` updates all of them. Each chain has a model of its own: the sampler
does not start afresh for a second chain in the same process.
"""

from time import perf_counter

import numpy as np
import pymc as pm
import pymc_bart as pmb
from bartrs import PGBART
from pymc_bart.utils import _get_posterior_sampler

from . import protocol
from .pymc_clock import Clock

DEFAULT_BATCH = 0.1


def predict(mu, problem):
    """Function values of the kept draws, each from the forest of that very draw."""
    forests = _get_posterior_sampler(mu.owner.op)
    draws = list(range(problem.thin - 1, problem.n_draws, problem.thin))
    X_test = np.ascontiguousarray(problem.X_test)
    values = forests.sample_posterior(X_test, draws, None)
    return values.reshape(len(draws), len(X_test)).astype(np.float32)


def run(problem):
    before = protocol.memory_now()
    y = problem.y
    batch = 1.0 if problem.variant == "all" else DEFAULT_BATCH
    f = np.empty((problem.chains, problem.kept, len(problem.X_test)), np.float32)
    sigmas, clocks, peak, seconds_predict = [], [], 0, 0.0
    for chain, seed in enumerate(problem.seeds()):
        clock = Clock()
        with pm.Model():
            mu = pmb.BART("mu", problem.X, y, m=problem.m, alpha=protocol.ALPHA, beta=protocol.BETA)
            sigma = pm.HalfNormal("sigma", y.std())
            pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
            idata = pm.sample(
                problem.n_draws,
                tune=problem.n_warmup,
                chains=1,
                cores=1,
                step=[PGBART([mu], batch=(batch, batch))],
                random_seed=seed,
                callback=clock,
                progressbar=False,
                compute_convergence_checks=False,
            )
        peak = max(peak, protocol.memory_peak())
        clocks.append(clock)
        sigmas.append(idata.posterior["sigma"].to_numpy()[0, problem.thin - 1 :: problem.thin])
        if len(problem.X_test):
            start = perf_counter()
            f[chain] = predict(mu, problem)
            seconds_predict += perf_counter() - start
    return protocol.Result(
        f=f,
        sigma=np.stack(sigmas),
        seconds_compile=sum(clock.compile for clock in clocks),
        seconds_warmup=sum(clock.warmup for clock in clocks),
        seconds_sampling=sum(clock.sampling for clock in clocks),
        seconds_predict=seconds_predict,
        sweeps_per_step=batch,
        bytes_before=before,
        bytes_peak=peak,
        version=pmb.__version__,
    )


if __name__ == "__main__":
    protocol.serve(run)
