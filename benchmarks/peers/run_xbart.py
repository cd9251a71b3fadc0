"""Runner for XBART: every sweep grows each tree anew, by a greedy search with noise.

Its sweeps are no Markov chain with the posterior as its law; intervals over them are what its
authors report (He and Hahn, 2023). The first of a chain start from nothing, as its chains do.
"""

from importlib.metadata import version
from time import perf_counter

import numpy as np
from xbart import XBART

from . import protocol


def run(problem):
    before = protocol.memory_now()
    mean, sd = problem.y.mean(), problem.y.std()  # its priors are for standardised outcomes
    sweeps = problem.n_warmup + problem.n_draws
    f = np.empty((problem.chains, problem.kept, len(problem.X_test)), np.float32)
    sigma = np.empty((problem.chains, problem.kept))
    fitted = predicted = 0.0
    kept = np.arange(problem.n_warmup, sweeps)[problem.thin - 1 :: problem.thin]
    for chain, seed in enumerate(problem.seeds()):
        model = XBART(num_trees=problem.m, num_sweeps=sweeps, burnin=problem.n_warmup, seed=seed)
        start = perf_counter()
        model.fit(problem.X, (problem.y - mean) / sd)
        fitted += perf_counter() - start
        sigma[chain] = sd * model.sigma_draws[kept, -1]
        if len(problem.X_test):
            start = perf_counter()
            draws = model.predict(problem.X_test, return_mean=False)
            f[chain] = mean + sd * draws[:, kept].T
            predicted += perf_counter() - start
    return protocol.Result(
        f=f,
        sigma=sigma,
        seconds_compile=0.0,
        seconds_warmup=fitted * problem.n_warmup / sweeps,  # a sweep takes much the same time
        seconds_sampling=fitted * problem.n_draws / sweeps,
        seconds_predict=predicted,
        sweeps_per_step=1.0,
        bytes_before=before,
        bytes_peak=protocol.memory_peak(),
        version=version("xbart"),
    )


if __name__ == "__main__":
    protocol.serve(run)
