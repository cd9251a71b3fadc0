"""Counts: coverage of f over data drawn from the prior, and effective samples of f per second.

``python -m benchmarks.poisson coverage`` draws forests from the prior and counts from them, and
reports how often the 95% intervals of f cover, averaged over rows, with its standard error over
replicates. ``python -m benchmarks.poisson speed`` fits one data set of 1,000 rows with 50 trees;
``--package pymc_bart`` does either with pymc-bart, whose leaf prior is its own.
"""

import argparse
import time

import numpy as np
import pymc as pm

N_TREES, MEAN, SD = 50, 0.02, 0.1


def our_model(X, n):
    import pymc_trees as pmt

    with pm.Model() as model:
        y = pm.Data("response", np.zeros(n, dtype="int64"))
        mu = pmt.BART("mu", X, m=N_TREES, leaf=pmt.NormalLeaf(MEAN, SD), max_nodes=4_000)
        pm.Poisson("y", pm.math.exp(mu), observed=y)
    return model


def our_draws(model, y, tune, draws, rng):
    """(draws, n) values of f, and the seconds they took without compilation."""
    import pymc_trees as pmt

    with model:
        pm.set_data({"response": y})
        step = pmt.Hybrid(rng=rng)
    point = model.initial_point()
    point, _ = step.step(point)  # compiles
    out = np.empty((draws, y.size))
    for k in range(tune + draws):
        if k == tune:
            start = time.perf_counter()
        point, _ = step.step(point)
        if k >= tune:
            out[k - tune] = step.forests[0].arrays.fit[:, 0]
    return out, time.perf_counter() - start


def peer_draws(X, y, tune, draws, seed):
    import pymc_bart as pmb

    with pm.Model():
        mu = pmb.BART("mu", X, np.log(y + 0.5), m=N_TREES)
        pm.Poisson("y", pm.math.exp(mu), observed=y)
        start = time.perf_counter()
        idata = pm.sample(
            draws,
            tune=tune,
            chains=1,
            cores=1,
            random_seed=seed,
            progressbar=False,
            compute_convergence_checks=False,
        )
        seconds = time.perf_counter() - start
    return idata.posterior["mu"].values[0], seconds * draws / (tune + draws)


def coverage(package, replicates, n, tune, draws, seed):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 5))
    model = our_model(X, n)
    truth, counts = pm.draw([model["mu"], model["y"]], draws=replicates, random_seed=seed)
    shares = []
    for r in range(replicates):
        if package == "pymc_trees":
            f, _ = our_draws(model, counts[r], tune, draws, rng)
        else:
            f, _ = peer_draws(X, counts[r], tune, draws, seed + r)
        low, high = np.quantile(f, [0.025, 0.975], axis=0)
        shares.append(np.mean((truth[r] >= low) & (truth[r] <= high)))
        if (r + 1) % 20 == 0 or r + 1 == replicates:
            error = np.std(shares, ddof=1) / np.sqrt(len(shares))
            print(f"{package}: {r + 1} replicates, coverage {np.mean(shares):.4f} +- {error:.4f}")


def speed(package, n, tune, draws, seed):
    import arviz_stats as azs

    rng = np.random.default_rng(seed)
    X = rng.random((n, 5))
    f = np.sin(6 * X[:, 0]) + 2 * (X[:, 1] - 0.5) ** 2 + 0.5 * X[:, 2]
    y = rng.poisson(np.exp(f))
    if package == "pymc_trees":
        found, seconds = our_draws(our_model(X, n), y, tune, draws, rng)
    else:
        found, seconds = peer_draws(X, y, tune, draws, seed)
    rows = np.linspace(0, n - 1, 50).astype(int)
    ess = np.array([azs.ess(found[None, :, i], method="bulk") for i in rows])
    rmse = np.sqrt(np.mean((found.mean(axis=0) - f) ** 2))
    print(
        f"{package}: {1e3 * seconds / draws:.2f} ms per draw, ESS of f per second: median "
        f"{np.median(ess) / seconds:.1f}, least {ess.min() / seconds:.1f}; RMSE of f {rmse:.3f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["coverage", "speed"])
    parser.add_argument("--package", choices=["pymc_trees", "pymc_bart"], default="pymc_trees")
    parser.add_argument("--replicates", type=int, default=500)
    parser.add_argument("--n", type=int)
    parser.add_argument("--tune", type=int, default=500)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    if a.what == "coverage":
        coverage(a.package, a.replicates, a.n or 100, a.tune, a.draws, a.seed)
    else:
        speed(a.package, a.n or 1_000, a.tune, a.draws, a.seed)


if __name__ == "__main__":
    main()
