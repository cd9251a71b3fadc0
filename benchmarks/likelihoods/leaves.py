"""Leaves of other kinds under likelihoods other than the Normal: how fast they move.

    python -m benchmarks.likelihoods.leaves
    python -m benchmarks.likelihoods.leaves --cases basis_binomial quantile_05 --draws 500

500 rows of three columns, 50 trees, two chains one after the other on one thread. Seconds are of
the wall, of a second run: the first compiles. ESS and R-hat are those of f at 50 rows.
"""

import argparse
from time import perf_counter

import numpy as np
import pymc as pm

import pymc_trees as pmt
from benchmarks.peers.metrics import ess, of_each, rhat

ROWS, TREES, FOLLOWED = 500, 50, 50
SD = 1.5 / np.sqrt(TREES)
SHARES = "accept_delayed", "accept_grow", "changes_per_visit"


def rows():
    """Inputs, and a function of them that rises in the first."""
    rng = np.random.default_rng(1)
    X = rng.random((ROWS, 3))
    return rng, X, 2.0 * X[:, 0] - 1.0 + np.sin(6.0 * X[:, 1]) * X[:, 2]


def binomial(f, mean, rng):
    trials = rng.integers(1_000, 8_000, ROWS)
    pm.Binomial("y", trials, logit_p=f, observed=rng.binomial(trials, 1 / (1 + np.exp(-mean))))


def poisson(f, mean, rng):
    pm.Poisson("y", pm.math.exp(f), observed=rng.poisson(np.exp(mean)))


def gamma(f, mean, rng):
    y = rng.gamma(5.0, np.exp(mean) / 5.0)
    pm.Gamma("y", alpha=5.0, beta=5.0 / pm.math.exp(f), observed=y)


def bernoulli(f, mean, rng):
    pm.Bernoulli("y", logit_p=f, observed=rng.random(ROWS) < 1 / (1 + np.exp(-mean)))


def quantile(q):
    def likelihood(f, mean, rng):
        b = pm.HalfNormal("b", 5.0)
        y = mean + 0.5 * rng.standard_normal(ROWS)
        pm.AsymmetricLaplace("y", mu=f, b=b, q=q, observed=y)

    return likelihood


def two_normals(f, mean, rng):
    y = np.stack([mean, 1.0 - mean]) + 0.3 * rng.standard_normal((2, ROWS))
    pm.Normal("y", f, 0.3, observed=y)


def of_basis(X):
    return {"leaf": pmt.BasisLeaf(np.column_stack([np.ones(ROWS), X[:, 2] - 0.5]), sd=SD)}


def constant(X):
    return {"leaf": pmt.NormalLeaf(0.0, SD)}


def linear(X):
    return {"leaf": pmt.NormalLeaf(0.0, SD), "response": "linear"}


def monotone(X):
    return constant(X) | {"monotone": {0: 1}}


def two_linear(X):
    return linear(X) | {"shape": (2, ROWS), "separate_trees": False}


CASES = {
    "basis_binomial": (of_basis, binomial),
    "constant_binomial": (constant, binomial),
    "linear_binomial": (linear, binomial),
    "linear_poisson": (linear, poisson),
    "linear_gamma": (linear, gamma),
    "linear_bernoulli": (linear, bernoulli),
    "two_linear_normals": (two_linear, two_normals),
    "constant_poisson": (constant, poisson),
    "monotone_poisson": (monotone, poisson),
    "constant_bernoulli": (constant, bernoulli),
    "monotone_bernoulli": (monotone, bernoulli),
    "quantile_05": (constant, quantile(0.05)),
    "quantile_95": (constant, quantile(0.95)),
}


def measure(name: str, chains: int, tune: int, draws: int) -> dict:
    """Milliseconds a step, shares of accepted proposals, R-hat and effective draws a second."""
    leaf, likelihood = CASES[name]
    rng, X, mean = rows()
    with pm.Model():
        f = pmt.BART("f", X, m=TREES, **leaf(X))
        likelihood(f, mean, rng)
        options = {"chains": chains, "cores": 1, "progressbar": False}
        options |= {"compute_convergence_checks": False}
        pm.sample(draws=2, tune=2, random_seed=1, **options)
        clock: list[float] = []
        options["callback"] = lambda trace, draw: clock.append(perf_counter())
        idata = pm.sample(draws=draws, tune=tune, random_seed=2, **options)
    times = np.array(clock).reshape(chains, -1)
    seconds = float((times[:, -1] - times[:, tune - 1]).sum())
    every = idata.posterior["f"].to_numpy().reshape(chains, draws, -1)
    draws_of_f = every[..., :: ROWS // FOLLOWED]
    stats = idata.sample_stats
    found = {"ms": 1e3 * seconds / (chains * draws)}
    found |= {s: float(stats[s].mean()) for s in SHARES if s in stats}
    effective, hats = of_each(ess, draws_of_f), of_each(rhat, draws_of_f)
    found |= {"rhat": np.median(hats), "worst": np.max(hats)}
    return found | {"ess/s": np.median(effective) / seconds, "least": np.min(effective) / seconds}


def main(arguments=None) -> None:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--tune", type=int, default=300)
    parser.add_argument("--draws", type=int, default=300)
    options = parser.parse_args(arguments)
    for name in options.cases:
        found = measure(name, options.chains, options.tune, options.draws)
        print(f"{name:20}", *(f"{k} {v:.3g}" for k, v in found.items()), flush=True)


if __name__ == "__main__":
    main()
