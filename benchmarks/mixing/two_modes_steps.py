"""Chains of `two_modes` by step methods of PyMC; sigma has the law that it has there."""

from collections.abc import Callable
from time import process_time

import numpy as np
import pymc as pm

import pymc_trees as pmt

STEPS: dict[str, Callable] = {
    "particle Gibbs, 10 particles": pmt.ParticleGibbs,
    "CGM, 5 temperatures": lambda: pmt.Tempering(pmt.CGM(), 5),
    "CGM, 10 temperatures": lambda: pmt.Tempering(pmt.CGM(), 10),
}


def step_chain(
    X: np.ndarray,
    y: np.ndarray,
    sampler: str,
    seed: int,
    n_steps: int,
    n_tuned: int,
    look: Callable,
    where: int,
) -> tuple[np.ndarray, float]:
    """Kinds of tree that ``look`` finds after each step, and CPU seconds."""
    with pm.Model() as model:
        leaf = pmt.NormalLeaf(0.0, np.ptp(y) / 4)
        f = pmt.DecisionTree("f", X, leaf=leaf, alpha=0.95, beta=1.0)
        sigma = pm.HalfFlat("sigma", initval=y.std())
        pm.Normal("y", f, sigma, observed=y, shape=f.shape)
        step = STEPS[sampler]()
    point, seen = model.initial_point(), np.empty(n_steps, dtype=np.int64)
    step.setup_chain(np.random.default_rng(seed), n_tuned, n_steps - n_tuned)
    rng, n = np.random.default_rng([seed, 1]), y.size
    begin = process_time()
    for s in range(n_steps):
        if s == n_tuned:
            step.stop_tuning()
        point, _ = step.step(point)
        total = np.sum((y - step.states[0].forest.fit[:, 0]) ** 2)
        precision = rng.standard_gamma(0.5 * n) / (0.5 * total)
        point = point | {"sigma_log__": np.array(-0.5 * np.log(precision))}
        seen[s] = look(step.states[0].forest.trees, where)
    return seen, process_time() - begin
