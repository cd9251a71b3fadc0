"""How many nodes forests reach between the first stumps and the posterior.

    python -m benchmarks.capacity                       # the table of benchmarks/notes/capacity.md
    python -m benchmarks.capacity --n 1000 --noise 0.1 --m 50 --steps 300

Friedman's first function, chains started from stumps. Reported are the most places of the pool in
use at once, inside of a sweep too, the nodes of the largest particle, and those of the forest after
each step. sigma is drawn from its conditional after each step, or known from the first on, which is
harder: the trees then take up all that is far from the few of before.
"""

import argparse
import json
from itertools import product
from time import perf_counter

import numpy as np
import pymc as pm

import pymc_trees as pmt
from pymc_trees.step_methods.kernels.tree_redraw import TreeRedraw

STEPS = {
    "Hybrid": pmt.Hybrid,
    "CGM": pmt.CGM,
    "ParticleGibbs": pmt.ParticleGibbs,
}
"""Step methods by name."""


def friedman(n, noise, p=10, seed=0):
    """Inputs, the function and a response."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, p))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    f += 10 * X[:, 3] + 5 * X[:, 4]
    return X, f, f + noise * rng.normal(size=n)


def declare(n, m, noise, likelihood, prior, room, p):
    """Model of a forest (``m = 0``: a `DecisionTree`) with room for ``room`` nodes."""
    X, f, y = friedman(n, noise, p)
    rng = np.random.default_rng(1)
    settings = {"max_nodes": min(room, max(m, 1) * (2 * n - 1))}
    if prior == "mondrian":
        settings["tree_prior"] = pmt.MondrianPrior(1.0)
    with pm.Model() as model:
        if likelihood == "gaussian":
            front = {"m": m} if m else {}
            mu = (pmt.BART if m else pmt.DecisionTree)("mu", X, y, **front, **settings)
            pm.Normal("y", mu, pm.HalfNormal("sigma", 1.0), observed=y, shape=mu.shape)
        else:
            centred = (f - f.mean()) / f.std()
            mu = pmt.BART("mu", X, m=m, leaf=pmt.NormalLeaf(0, 1.5 / np.sqrt(m)), **settings)
            if likelihood == "bernoulli":
                y = rng.binomial(1, 1 / (1 + np.exp(-2 * centred)))
                pm.Bernoulli("y", logit_p=mu, observed=y, shape=mu.shape)
            else:
                pm.Poisson("y", pm.math.exp(mu), observed=rng.poisson(np.exp(centred)))
    return model, y


def places_used(trees):
    """Most places of the pool in use at once: what was never taken lies at the bottom in order."""
    free = trees.free[: len(trees.free) - len(trees.roots)]
    moved = np.flatnonzero(free != len(trees.free) - 1 - np.arange(len(free)))
    untouched = moved[0] if len(moved) else trees.n_free[0]
    return int(len(trees.free) - min(untouched, trees.n_free[0]))


def watch(
    n,
    m,
    noise,
    *,
    steps,
    step="Hybrid",
    sigma="known",
    likelihood="gaussian",
    prior="cgm",
    room=400_000,
    p=10,
    seconds=300.0,
    seed=1,
):
    """Run a chain from stumps; nodes along the way."""
    model, y = declare(n, m, noise, likelihood, prior, room, p)
    rng = np.random.default_rng(seed)
    with model:
        sampler = STEPS[step]()
    sampler.rng = rng
    point = model.initial_point()
    free_sigma = "sigma_log__" in point
    if free_sigma and sigma == "known":
        point["sigma_log__"] = np.array(np.log(noise))
    redraws = [one for one in sampler.kernels if isinstance(one, TreeRedraw)]
    space = redraws[0].workspace(sampler.forests[0]) if redraws else None
    nodes, used = [], []
    start = perf_counter()
    while len(nodes) < steps and perf_counter() - start < seconds:
        if space is not None:
            space.particles.column[:] = -9
        point, stats = sampler.step(point)
        if space is not None:
            used.append(int((space.particles.column != -9).sum(axis=1).max()))
        nodes.append(2 * stats[0]["n_leaves"] - max(m, 1))
        if free_sigma and sigma == "drawn":
            rss = ((y - sampler.states[0].forest.fit[:, 0]) ** 2).sum()
            point["sigma_log__"] = np.array(0.5 * np.log(rss / rng.chisquare(n)))
    rmse = float(np.sqrt(((y - sampler.states[0].forest.fit[:, 0]) ** 2).mean()))
    return {
        "n": n,
        "m": m,
        "noise": noise,
        "step": step,
        "sigma": sigma,
        "likelihood": likelihood,
        "prior": prior,
        "p": p,
        "steps": len(nodes),
        "most": places_used(sampler.states[0].forest.trees),
        "at step": int(np.argmax(nodes)) + 1,
        "particle": max(used, default=0),
        "largest end of step": int(max(nodes)),
        "first": [int(v) for v in nodes[:6]],
        "last": int(nodes[-1]),
        "rmse": round(rmse, 4),
        "s per step": round((perf_counter() - start) / len(nodes), 3),
    }


def table():
    """Settings of the rows of benchmarks/notes/capacity.md."""
    for n, noise in product((300, 1000, 10_000, 50_000, 200_000), (1.0, 0.01)):
        for m in (1, 50) if n == 200_000 else (0, 1, 10, 50, 200):
            steps = 100 if n < 5000 else 20
            sigma = "drawn" if m else "known"
            yield {"n": n, "m": m, "noise": noise, "steps": steps, "sigma": sigma}
    for n, noise in product((1000, 10_000, 50_000), (0.1, 0.01)):
        yield {"n": n, "m": 50, "noise": noise, "steps": 60, "sigma": "known"}
    for step, steps in (("CGM", 400), ("ParticleGibbs", 40)):
        yield {"n": 10_000, "m": 50, "noise": 0.01, "step": step, "steps": steps}
    for likelihood in ("bernoulli", "poisson"):
        yield {"n": 10_000, "m": 50, "noise": 1.0, "likelihood": likelihood, "steps": 15}
    for noise in (1.0, 0.01):
        yield {"n": 10_000, "m": 50, "noise": noise, "prior": "mondrian", "steps": 20}


def main():
    """Print the rows of the table, or the one asked for, as lines of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int)
    parser.add_argument("--m", type=int, default=50)
    parser.add_argument("--noise", type=float, default=1.0)
    parser.add_argument("--step", choices=list(STEPS), default="Hybrid")
    parser.add_argument("--sigma", choices=["drawn", "known"], default="drawn")
    parser.add_argument("--likelihood", default="gaussian")
    parser.add_argument("--prior", default="cgm")
    parser.add_argument("--p", type=int, default=10)
    parser.add_argument("--steps", type=int, default=60)
    given = vars(parser.parse_args())
    for settings in table() if given["n"] is None else [given]:
        print(json.dumps(watch(**settings)), flush=True)


if __name__ == "__main__":
    main()
