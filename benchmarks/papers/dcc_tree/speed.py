"""Gradients per second, beside PyMC's NUTS on the hand-written model of one topology; per draw."""

import time

import numpy as np
import pymc as pm

from pymc_trees.dcc.dcc import DCC, Settings
from pymc_trees.dcc.kernels.encode import n_splits
from pymc_trees.dcc.local import visit, warm_up
from pymc_trees.dcc.nuts import run_chain
from pymc_trees.dcc.topology_model import TopologyModel

from . import runs

LABEL = "SSLLL"
POINTS = 20
CHAINS, WARM_UP, DRAWS = 8, 0.15, 100
"""For gradients per draw; the warm-up as a share of the paper's."""


def measure(data, repeats=5, calls=2000, draws=400):
    """Per second of the processor: calls of the compiled gradients, and gradients within NUTS.

    The calls are at unconstrained points of normal coordinates, the same numbers for both.
    """
    with pm.Model() as model:
        runs.soft_tree(data)
    posterior = TopologyModel(model)
    posterior.set_topology(LABEL)
    ours = posterior.density._pytensor_function
    points = np.random.default_rng(1).normal(size=(POINTS, posterior.dimension))
    with written_out(data) as plain:
        function = plain.logp_dlogp_function(ravel_inputs=True)
    function.set_extra_values({})
    theirs = function._pytensor_function
    theirs.trust_input = True
    chain = warm_up(posterior, LABEL, np.random.default_rng(2), draws).chain.nuts
    start = time.process_time()
    gradients = run_chain(posterior.density, chain, draws).gradients
    in_nuts = gradients / (time.process_time() - start)
    return {
        "dimension": posterior.dimension,
        "ours": rate(ours, points, repeats, calls),
        "written_out": rate(theirs, points, repeats, calls),
        "ours_in_nuts": in_nuts,
        "written_out_in_nuts": plain_nuts(plain, draws),
        **per_draw(posterior, round(WARM_UP * data.tune)),
    }


def per_draw(posterior, tune):
    """Gradients per draw: by variances of each chain, and by covariances of all."""
    rngs = [np.random.default_rng([0, k]) for k in range(CHAINS)]
    alone = [warm_up(posterior, LABEL, rng, tune, repeats=False).chain for rng in rngs]
    dcc = DCC(posterior, Settings(chains=CHAINS, tune=tune, local_draws=DRAWS), 0)
    dcc.warm_up([LABEL], tune)
    before = gradients_of(dcc)
    dcc.visit(LABEL)
    return {
        "variances": float(np.mean([visit(posterior, LABEL, c, DRAWS).cost for c in alone])),
        "covariances": (gradients_of(dcc) - before) / (CHAINS * DRAWS),
    }


def gradients_of(dcc):
    return sum(chain.gradients for chain in dcc.topologies[LABEL].chains)


def plain_nuts(model, draws):
    """Gradients per second of PyMC's NUTS on a model, after as many iterations of tuning."""
    step, point = pm.NUTS(model=model), model.initial_point()
    for _ in range(draws):
        point, _ = step.step(point)
    step.stop_tuning()
    start, gradients = time.process_time(), 0
    for _ in range(draws):
        point, [stats] = step.step(point)
        gradients += int(stats["tree_size"])
    return gradients / (time.process_time() - start)


def rate(function, points, repeats, calls):
    """Median over repeats of the calls per second."""
    function(points[0])
    rates = []
    for _ in range(repeats):
        start = time.process_time()
        for k in range(calls):
            function(points[k % len(points)])
        rates.append(calls / (time.process_time() - start))
    return float(np.median(rates))


def written_out(data):
    """`LABEL` in plain PyMC: the left child of the root is split."""
    x = (data.X - data.X.min(axis=0)) / np.ptp(data.X, axis=0)
    splits, p = n_splits(LABEL), x.shape[1]
    with pm.Model() as model:
        delta = pm.Dirichlet("delta", np.ones(p), shape=(splits, p))
        tau = pm.Beta("tau", 1, 1, shape=splits)
        left = pm.math.sigmoid((pm.math.dot(x, delta.T) - tau) / data.h[1])
        share = pm.math.stack(
            [left[:, 0] * left[:, 1], left[:, 0] * (1 - left[:, 1]), 1 - left[:, 0]], axis=1
        )
        if data.classes:
            shown = np.eye(data.classes)[data.y]
            counts = pm.math.dot(share.T, shown)
            total = pm.math.sum(counts, axis=1)
            pm.Potential(
                "eq_8",
                pm.math.sum(pm.math.gammaln(counts + 1))
                - pm.math.sum(pm.math.gammaln(total + data.classes)),
            )
        else:
            value = pm.Normal("value", 0, 1, shape=splits + 1)
            sigma = pm.InverseGamma("sigma", 1.5, 1.5)
            pm.Normal("y", pm.math.dot(share, value), sigma, observed=data.y)
    return model
