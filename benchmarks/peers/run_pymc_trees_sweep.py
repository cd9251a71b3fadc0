"""Runner that times this package's sweep alone: its step method, without PyMC's own sampling.

A sweep reads the likelihood at the point, updates every tree and encodes the forest; sigma stays
at 1, the sd of Friedman's noise. Variants as in `run_pymc_trees`.
"""

from time import perf_counter

import numpy as np
import pymc as pm

import pymc_trees as pmt

from . import protocol


def run(problem):
    before = protocol.memory_now()
    X, y = problem.X, problem.y
    with pm.Model() as model:
        mu = pmt.BART("mu", X, y, m=problem.m)
        sigma = pm.HalfNormal("sigma", y.std())
        pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
        step = getattr(pmt, problem.variant or "CGM")()
        point = model.initial_point()
    start = perf_counter()
    step.setup_chain(np.random.default_rng(problem.seed), problem.n_warmup, problem.n_draws)
    point["sigma_log__"] = np.array(0.0)
    point, _ = step.step(point)
    compiled = perf_counter()
    for _ in range(problem.n_warmup):
        point, _ = step.step(point)
    warm = perf_counter()
    for _ in range(problem.n_draws):
        point, _ = step.step(point)
    end = perf_counter()
    return protocol.Result(
        f=np.empty((1, problem.kept, 0), np.float32),
        sigma=np.ones((1, problem.kept)),
        seconds_compile=compiled - start,
        seconds_warmup=warm - compiled,
        seconds_sampling=end - warm,
        seconds_predict=0.0,
        sweeps_per_step=1.0,
        bytes_before=before,
        bytes_peak=protocol.memory_peak(),
        version=pmt.__version__,
    )


if __name__ == "__main__":
    protocol.serve(run)
