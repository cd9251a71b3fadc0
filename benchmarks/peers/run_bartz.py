"""Runner for bartz on the CPU.

The first chain is run twice and the first of these runs, which compiles, is discarded.
A sweep costs the same at any time, so the run is timed as a whole and split by sweeps.
"""

from importlib.metadata import version
from time import perf_counter

import numpy as np
from bartz import Bart

from . import protocol


def fit(problem, seed):
    model = Bart(
        problem.X.T.astype(np.float32),
        problem.y.astype(np.float32),
        num_trees=problem.m,
        base=protocol.ALPHA,
        power=protocol.BETA,
        k=protocol.K,
        n_burn=problem.n_warmup,
        n_save=problem.kept,
        n_skip=problem.thin,
        num_chains=None,
        seed=seed,
        printevery=None,
    )
    sigma = np.asarray(model.get_error_sdev())
    return model, sigma


def run(problem):
    before = protocol.memory_now()
    f = np.empty((problem.chains, problem.kept, len(problem.X_test)), np.float32)
    sigma = np.empty((problem.chains, problem.kept))
    start = perf_counter()
    fit(problem, problem.seed)
    first = perf_counter() - start
    predict = 0.0
    seconds = []
    peak = 0
    for chain, seed in enumerate(problem.seeds()):
        start = perf_counter()
        model, sigma[chain] = fit(problem, seed)
        seconds.append(perf_counter() - start)
        peak = max(peak, protocol.memory_peak())
        if len(problem.X_test):
            start = perf_counter()
            X_test = problem.X_test.T.astype(np.float32)
            f[chain] = np.asarray(model.predict(X_test, kind="latent_samples"))
            predict += perf_counter() - start
    share = problem.n_warmup / (problem.n_warmup + problem.n_draws)
    return protocol.Result(
        f=f,
        sigma=sigma,
        seconds_compile=max(first - seconds[0], 0.0),
        seconds_warmup=share * sum(seconds),
        seconds_sampling=(1 - share) * sum(seconds),
        seconds_predict=predict,
        sweeps_per_step=1.0,
        bytes_before=before,
        bytes_peak=peak,
        version=version("bartz"),
    )


if __name__ == "__main__":
    protocol.serve(run)
