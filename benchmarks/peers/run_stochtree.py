"""Runner for stochtree: its MCMC alone; ``stochtree:warm`` begins at trees grown from roots."""

from importlib.metadata import version
from time import perf_counter

import numpy as np
import stochtree.bart
from stochtree import BARTModel

from . import protocol

GROWN = 10
"""Sweeps of the warm start, stochtree's default; they count as warm-up."""


class TimedVariance(stochtree.bart.GlobalVarianceModel):
    """The error variance is drawn once per sweep: the only sign of life in the loop."""

    times: list[float] = []

    def sample_one_iteration(self, *args):
        value = super().sample_one_iteration(*args)
        self.times.append(perf_counter())
        return value


def leaf_variance(y, m):
    """The usual leaf prior, range / (2 k sqrt(m)), on the standardised outcome."""
    return float((np.ptp(y) / (2 * protocol.K * np.sqrt(m)) / y.std()) ** 2)


def fit(problem, seed, grown):
    model = BARTModel()
    model.sample(
        X_train=problem.X,
        y_train=problem.y,
        num_gfr=grown,
        num_burnin=problem.n_warmup - grown,
        num_mcmc=problem.kept,
        general_params={"random_seed": seed, "num_threads": 1, "keep_every": problem.thin},
        mean_forest_params={
            "num_trees": problem.m,
            "alpha": protocol.ALPHA,
            "beta": protocol.BETA,
            "min_samples_leaf": 1,
            "sample_sigma2_leaf": False,
            "sigma2_leaf_init": leaf_variance(problem.y, problem.m),
        },
    )
    return model


def run(problem):
    before = protocol.memory_now()
    grown = min(GROWN, problem.n_warmup - 1) if problem.variant == "warm" else 0
    stochtree.bart.GlobalVarianceModel = TimedVariance
    f = np.empty((problem.chains, problem.kept, len(problem.X_test)), np.float32)
    sigma = np.empty((problem.chains, problem.kept))
    start_up = warmup = sampling = predict = 0.0
    peak = 0
    for chain, seed in enumerate(problem.seeds()):
        TimedVariance.times.clear()
        start = perf_counter()
        model = fit(problem, seed, grown)
        times, w = TimedVariance.times, problem.n_warmup
        first = (times[-1] - times[0]) / (len(times) - 1)
        start_up += times[0] - start - first
        warmup += times[w - 1] - times[0] + first
        sampling += times[-1] - times[w - 1]
        peak = max(peak, protocol.memory_peak())
        sigma[chain] = np.sqrt(model.global_var_samples)
        if len(problem.X_test):
            start = perf_counter()
            f[chain] = model.predict(problem.X_test, terms="y_hat").T
            predict += perf_counter() - start
    return protocol.Result(
        f=f,
        sigma=sigma,
        seconds_compile=max(start_up, 0.0),
        seconds_warmup=warmup,
        seconds_sampling=sampling,
        seconds_predict=predict,
        sweeps_per_step=1.0,
        bytes_before=before,
        bytes_peak=peak,
        version=version("stochtree"),
    )


if __name__ == "__main__":
    protocol.serve(run)
