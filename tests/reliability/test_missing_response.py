"""NaN in the response: PyMC makes variables of those entries, and the forest's law stays exact.

A missing entry says nothing of the forest, so the posterior is that of the other rows, with all
rows in the tree prior: the oracle lists it with a noise so wide that the row weighs nothing. Draws
alternate the forest's step with the missing entry given the function. 60 batches, some 20 averages
at 5.5 standard errors (t law, 59 degrees of freedom): one fresh run in 50,000 fails by chance.
"""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytest
from support.naive.batches import batch_means, frequencies, gap, law_gap
from support.naive.laws import PROBLEMS, partition_posterior
from support.oracle import dynamic_posterior

import pymc_trees as pmt

PROBLEM = PROBLEMS["gaps"]
GONE = 3  # with it the law of the partition is another: total variation 0.32


@pytest.mark.full
def test_missing_responses_are_integrated_out_exactly():
    y = PROBLEM.y.copy()
    y[GONE] = np.nan
    with pm.Model() as model:
        leaf = pmt.NormalLeaf(PROBLEM.mean, PROBLEM.sd)
        mu = pmt.BART("mu", PROBLEM.X, m=1, leaf=leaf, **PROBLEM.prior)
        with pytest.warns(UserWarning, match="will be automatically imputed"):
            pm.Normal("y", mu, PROBLEM.sigma, observed=y)
    step = pmt.CGM(model=model, rng=3)
    step.stop_tuning()
    evaluate = model.compile_fn(mu, inputs=[model["mu_forest"]], point_fn=False)
    rng, point, f = np.random.default_rng(4), model.initial_point(), []
    for _ in range(9000):
        point, _ = step.step(point)
        f.append(np.array(evaluate(point["mu_forest"])))
        point["y_unobserved"] = rng.normal(f[-1][[GONE]], PROBLEM.sigma)
    f = np.array(f)

    sigma = np.full(PROBLEM.n, PROBLEM.sigma)
    sigma[GONE] = 1e8
    problem = replace(PROBLEM, sigma=sigma)
    exact = partition_posterior(problem, "normal")
    alike = np.abs(f[:, :, None] - f[:, None, :]) < 1e-9
    rows, place = np.unique(alike, axis=0, return_inverse=True)
    states = [frozenset(frozenset(np.flatnonzero(r).tolist()) for r in same) for same in rows]
    shares = frequencies(place.reshape(-1), 60)[1]
    partitions = law_gap(states, shares, exact, len(f))
    assert partitions.within(5.5, 0.04), partitions
    listed = dynamic_posterior(
        problem.X, problem.normal(), leaf_moments=problem.normal().moments, **problem.prior
    )
    mean = gap(batch_means((f - listed.mean) / listed.sd, 60), 0.0)
    assert mean.within(5.5, 0.12), mean
    with_y = partition_posterior(PROBLEM, "normal")
    assert law_gap(states, shares, with_y, len(f)).z > 11
