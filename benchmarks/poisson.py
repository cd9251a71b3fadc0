"""Counts: coverage of f over data drawn from the prior, and effective samples of f per second.

``python -m benchmarks.poisson coverage`` draws forests from the prior and counts from them, and
reports how often the 95% intervals of f cover, averaged over rows, with its standard error over
replicates. The ends are at Weibull's positions: between them a new draw falls with probability 0.95
exactly, if the draws are independent. ``python -m benchmarks.poisson speed`` fits one data set of
1,000 rows with 50 trees; ``--package pymc_bart`` does either with pymc-bart, whose leaf prior is
its own.
"""

import argparse
import time

import numpy as np
import pymc as pm

LEVEL, SPREAD = 1.0, 0.7
"""Prior mean and sd of f."""


def our_model(X, m):
    import pymc_trees as pmt

    n = len(X)
    leaf = pmt.NormalLeaf(LEVEL / m, SPREAD / np.sqrt(m))
    with pm.Model() as model:
        y = pm.Data("response", np.zeros(n, dtype="int64"))
        mu = pmt.BART("mu", X, m=m, leaf=leaf, max_nodes=min(4_000, m * (2 * n - 1)))
        pm.Poisson("y", pm.math.exp(mu), observed=y)
    return model


def our_draws(model, step, y, tune, draws, rng):
    """(draws, n) values of f, and the seconds of CPU they took."""
    with model:
        pm.set_data({"response": y})
    step.setup_chain(rng, tune, draws)
    point = model.initial_point()
    out = np.empty((draws, y.size))
    for k in range(tune + draws):
        if k == tune:
            start = time.process_time()
        point, _ = step.step(point)
        if k >= tune:
            out[k - tune] = step.states[0].forest.fit[:, 0]
    return out, time.process_time() - start


def peer_draws(X, y, m, tune, draws, seed):
    import pymc_bart as pmb

    with pm.Model():
        mu = pmb.BART("mu", X, np.log(y + 0.5), m=m)
        pm.Poisson("y", pm.math.exp(mu), observed=y)
        clock = []
        idata = pm.sample(
            draws,
            tune=tune,
            chains=1,
            cores=1,
            random_seed=seed,
            progressbar=False,
            compute_convergence_checks=False,
            callback=lambda trace, draw: clock.append(time.process_time()),
        )
    return idata.posterior["mu"].values[0], clock[-1] - clock[-draws - 1]


def coverage(a):
    rng = np.random.default_rng(a.seed)
    X = rng.random((a.n, 5))
    model = our_model(X, a.trees)
    truth, counts = pm.draw([model["mu"], model["y"]], draws=a.replicates, random_seed=a.seed)
    step = our_step(a, model) if a.package == "pymc_trees" else None
    shares = []
    for r in range(a.replicates):
        if step is not None:
            f, _ = our_draws(model, step, counts[r], a.tune, a.draws, rng)
        else:
            f, _ = peer_draws(X, counts[r], a.trees, a.tune, a.draws, a.seed + r)
        kept = f[:: a.thin]
        low, high = np.quantile(kept, [0.025, 0.975], axis=0, method="weibull")
        shares.append(np.mean((truth[r] >= low) & (truth[r] <= high)))
        if (r + 1) % 20 == 0 or r + 1 == a.replicates:
            error = np.std(shares, ddof=1) / np.sqrt(len(shares))
            found = f"{r + 1} replicates, coverage {np.mean(shares):.4f} +- {error:.4f}"
            print(f"{a.package}: {found}", flush=True)


def our_step(a, model):
    import pymc_trees as pmt

    with model:
        return getattr(pmt, a.step)()


def speed(a):
    import arviz_stats as azs

    rng = np.random.default_rng(a.seed)
    X = rng.random((a.n, 5))
    f = np.sin(6 * X[:, 0]) + 2 * (X[:, 1] - 0.5) ** 2 + 0.5 * X[:, 2]
    y = rng.poisson(np.exp(f))
    if a.package == "pymc_trees":
        model = our_model(X, a.trees)
        step = our_step(a, model)
        step.step(model.initial_point())  # compiles
        found, seconds = our_draws(model, step, y, a.tune, a.draws, rng)
    else:
        found, seconds = peer_draws(X, y, a.trees, a.tune, a.draws, a.seed)
    rows = np.linspace(0, a.n - 1, 50).astype(int)
    ess = np.array([azs.ess(found[None, :, i], method="bulk") for i in rows])
    rmse = np.sqrt(np.mean((found.mean(axis=0) - f) ** 2))
    who = a.package if a.package == "pymc_bart" else a.step
    print(
        f"{who}: {1e3 * seconds / a.draws:.2f} ms of CPU per draw; ESS of f per second of CPU: "
        f"median {np.median(ess) / seconds:.1f}, least {ess.min() / seconds:.1f}; "
        f"RMSE of f {rmse:.3f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["coverage", "speed"])
    parser.add_argument("--package", choices=["pymc_trees", "pymc_bart"], default="pymc_trees")
    parser.add_argument("--step", choices=["Hybrid", "CGM", "ParticleGibbs"], default="Hybrid")
    parser.add_argument("--replicates", type=int, default=500)
    parser.add_argument("--n", type=int, help="default 25 (coverage), 1,000 (speed)")
    parser.add_argument("--trees", type=int, help="default 5 (coverage), 50 (speed)")
    parser.add_argument("--tune", type=int, default=100)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--thin", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    small = a.what == "coverage"
    a.n = a.n or (25 if small else 1_000)
    a.trees = a.trees or (5 if small else 50)
    coverage(a) if small else speed(a)


if __name__ == "__main__":
    main()
