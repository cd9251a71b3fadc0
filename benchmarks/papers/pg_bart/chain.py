"""One chain: the noise variance from its conditional, then the forest (algorithm 1).

The steps are called as `pm.sample` calls them, but nothing is recorded beside a few numbers. Only
the two draws are timed, in seconds of CPU of this process.
"""

import zlib
from time import process_time
from typing import NamedTuple

import numpy as np

import pymc_trees as pmt

from . import houses, hypercube, model, samplers

LAST = 100  # iterations at the end of the warm-up by which a chain is judged


class Task(NamedTuple):
    """A chain to be run."""

    case: str  # "hypercube" or "houses"
    size: int  # D, or m
    seed: int  # of the data, or the training set
    chain: int
    sampler: str
    warmup: int
    draws: int
    test_every: int


class Record(NamedTuple):
    """What is kept of a chain, one number for each iteration."""

    leaves: np.ndarray
    log_likelihood: np.ndarray
    sigma: np.ndarray
    seconds: np.ndarray
    test_mse: np.ndarray  # every ``test_every`` iterations
    fit_warm: np.ndarray  # (n,) mean fit over the last `LAST` iterations of the warm-up
    fit: np.ndarray  # (n,) mean fit over the draws


def data_of(task):
    if task.case == "hypercube":
        return hypercube.hypercube(task.size, task.seed)
    return houses.houses(task.seed)


def declare(task, data):
    if task.case == "hypercube":
        return model.declare(data, 1, hypercube.BETA[task.size])
    return model.declare(data, task.size, 2.0)


def draw_variance(rng, residual, shape, scale):
    """Inverse gamma conditional of the noise variance (algorithm 1, line 4)."""
    rate = scale + 0.5 * residual @ residual
    return rate / rng.standard_gamma(shape + 0.5 * residual.size)


def functions_of(declared, data):
    """Compiled: value of the forest -> fit at the training rows, and at the test rows."""
    forest = declared.model["mu_forest"]
    train = declared.model.compile_fn(declared.model["mu"], inputs=[forest], point_fn=False)
    at_test = pmt.evaluate(forest, data.X_test)
    test = declared.model.compile_fn(at_test, inputs=[forest], point_fn=False)
    return train, test


def run(task):
    """`Record` of a task; the same task gives the same record but for the seconds."""
    data = data_of(task)
    declared = declare(task, data)
    fit_of, test_of = functions_of(declared, data)
    name = zlib.crc32(task.sampler.encode())
    rng = np.random.default_rng([task.size, task.seed, task.chain, name])
    steps = samplers.make_steps(task.sampler, declared.model, rng, task.warmup, task.draws)
    total = task.warmup + task.draws
    kept = {key: np.empty(total) for key in ("leaves", "log_likelihood", "sigma", "seconds")}
    test_mse, fit_warm, fit_kept = [], np.zeros(data.y.size), np.zeros(data.y.size)
    start = declared.model.initial_point(random_seed=task.chain)
    for step, _ in steps:  # loads compiled code
        step.step(dict(start))
    steps = samplers.make_steps(task.sampler, declared.model, rng, task.warmup, task.draws)
    point = start
    fit = np.asarray(fit_of(point["mu_forest"])).reshape(-1)
    for i in range(total):
        if i == task.warmup:
            for step, _ in steps:
                step.stop_tuning()
        begin = process_time()
        variance = draw_variance(rng, data.y - fit, declared.shape, declared.scale)
        point["variance_log__"] = np.asarray(np.log(variance))
        for step, times in steps:
            for _ in range(times):
                point, [stats] = step.step(point)
        fit = np.asarray(fit_of(point["mu_forest"])).reshape(-1)
        kept["seconds"][i] = process_time() - begin
        kept["leaves"][i] = stats["n_leaves"]
        kept["log_likelihood"][i] = stats["log_likelihood"]
        kept["sigma"][i] = np.sqrt(variance)
        if i >= task.warmup:
            fit_kept += fit / task.draws
        elif i >= task.warmup - LAST:
            fit_warm += fit / min(LAST, task.warmup)
        if i % task.test_every == 0:
            test = np.asarray(test_of(point["mu_forest"])).reshape(-1)
            test_mse.append(np.mean((test - data.y_test) ** 2))
    return Record(**kept, test_mse=np.array(test_mse), fit_warm=fit_warm, fit=fit_kept)
