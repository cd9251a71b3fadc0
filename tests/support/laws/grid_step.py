"""`ParticleGibbs.step` under the grid prior (``n_cuts``, 8-bit cells) against the enumeration.

The partition of a draw is read off the function: rows with the same value, but for rounding, share
a leaf, since leaf values are continuous.
"""

from dataclasses import replace

import numpy as np
import pymc as pm

import pymc_trees as pmt
from pymc_trees.distributions.forest_inputs import declared
from support import oracle as o
from support.naive.batches import batch_means, frequencies, gap, independent_se, law_gap
from support.naive.laws import PROBLEMS, partition_posterior

BATCHES = 60
Z = 5.5


def grid_problem(name, n_cuts, **prior):
    """The problem with cuts at quantiles instead of its own, and a model that declares it."""
    problem = PROBLEMS[name]
    settings = {key: problem.prior[key] for key in ("alpha", "beta")} | prior
    with pm.Model() as model:
        leaf = pmt.NormalLeaf(problem.mean, problem.sd)
        mu = pmt.BART("mu", problem.X, m=1, leaf=leaf, n_cuts=n_cuts, **settings)
        pm.Normal("y", mu, problem.sigma, observed=problem.y, shape=mu.shape)
    return replace(problem, prior=settings | {"cuts": declared(model["mu_forest"]).cuts}), model


def draws_of(model, step, n_draws):
    """(n_draws, n) functions at the training rows."""
    assert step.forests[0].design.columns.dtype == np.uint8
    step.stop_tuning()
    evaluate = model.compile_fn(model["mu"], inputs=[model["mu_forest"]], point_fn=False)
    point, f = model.initial_point(), []
    for _ in range(n_draws):
        point, _ = step.step(point)
        f.append(np.array(evaluate(point["mu_forest"])).reshape(-1))
    return np.array(f)


def partitions_of(f):
    """Partition of each draw, as the oracle writes it."""
    alike = np.abs(f[:, :, None] - f[:, None, :]) < 1e-9
    rows, place = np.unique(alike, axis=0, return_inverse=True)
    states = [frozenset(frozenset(np.flatnonzero(row).tolist()) for row in same) for same in rows]
    return states, place.reshape(-1)


def by_steps(name, n_cuts, proposal, resampling, particles):
    """Draws of the step, as a sampler of PyMC takes them."""
    problem, model = grid_problem(name, n_cuts)
    exact = partition_posterior(problem, "normal")
    assert len(exact) >= 10
    step = pmt.ParticleGibbs(
        model=model,
        num_particles=particles,
        proposal=proposal,
        resampling=resampling,
        rng=len(name) + particles,
    )
    f = draws_of(model, step, 12_000)
    states, place = partitions_of(f)
    _, shares = frequencies(place, BATCHES)
    partitions = law_gap(states, shares, exact, len(f))
    assert partitions.within(Z, 0.03), partitions

    listed = o.dynamic_posterior(
        problem.X, problem.normal(), leaf_moments=problem.normal().moments, **problem.prior
    )
    above = np.triu_indices(problem.n, 1)
    same = np.array([o.same_leaf(state, problem.n)[above] for state in states])
    chances = listed.pair_probabilities[above]
    pairs = gap(shares @ same, chances, independent_se(chances, len(f)))
    assert pairs.within(Z, 0.04), pairs
    scaled = (f - listed.mean) / listed.sd
    mean, square = gap(batch_means(scaled, BATCHES), 0.0), gap(batch_means(scaled**2, BATCHES), 1.0)
    assert mean.within(Z, 0.1) and square.within(Z, 0.15), (mean, square)
