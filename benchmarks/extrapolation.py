"""A linear trend and a step, beyond the training rows: ``python -m benchmarks.extrapolation``.

``y = 3 x_1 + 2 1(x_2 > 0.5) + 0.3 noise`` of five columns, uniform in (0, 1) in training; x_1 in
(1, 1.5) held out, and again rows like those of training. RMSE of the posterior mean of f.
"""

import argparse
import time
import warnings

import numpy as np
import pandas as pd
import pymc as pm

import pymc_trees as pmt
from benchmarks.tables.lines import run_table
from pymc_trees.distributions.leaves.default import default_leaf

N, P, NOISE = 300, 5, 0.3


def truth(X):
    return 3.0 * X[:, 0] + 2.0 * (X[:, 1] > 0.5)


def data(replicate: int):
    """Training rows and their responses; held-out rows inside, and outside."""
    rng = np.random.default_rng(replicate)
    X, inside, outside = rng.random((N, P)), rng.random((N, P)), rng.random((N, P))
    outside[:, 0] = 1.0 + 0.5 * outside[:, 0]
    return X, truth(X) + NOISE * rng.normal(size=N), inside, outside


def ours(columns):
    """50 trees, 500 draws after 500 of two chains."""

    def fit(X, y, new, seed):
        with pm.Model() as model, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = {}
            if columns != "constant":
                plain = default_leaf(y, len(y), 50)
                given = {"leaf": pmt.LinearLeaf(plain.mean, plain.sd, columns=columns)}
            f = pmt.BART("f", X, y, m=50, **given)
            sigma = pm.HalfNormal("sigma", y.std())
            pm.Normal("y", f, sigma, observed=y, shape=f.shape)
            options = {"progressbar": False, "compute_convergence_checks": False}
            idata = pm.sample(500, tune=500, chains=2, cores=2, random_seed=seed, **options)
        return (
            pmt.predictions(idata, model, new, var_name="f").mean(("chain", "draw")).to_array()[0]
        )

    return fit


def stochtree(slopes: bool):
    """50 trees; with a regression on all columns in each leaf, or constant leaves."""

    def fit(X, y, new, seed):
        from stochtree import BARTModel

        one, many = np.ones((len(X), 1)), np.ones((len(new), 1))
        basis = {}
        if slopes:
            basis = {
                "leaf_basis_train": np.hstack([one, X]),
                "leaf_basis_test": np.hstack([many, new]),
            }
        model = BARTModel()
        model.sample(
            X_train=X,
            y_train=y,
            X_test=new,
            num_gfr=10,
            num_burnin=500,
            num_mcmc=1000,
            general_params={"random_seed": seed},
            mean_forest_params={"num_trees": 50},
            **basis,
        )
        return np.asarray(model.y_hat_test).mean(axis=1)

    return fit


METHODS = {
    "pymc_trees, constant": ours("constant"),
    "pymc_trees, parent": ours("parent"),
    "pymc_trees, path": ours("path"),
    "pymc_trees, all": ours("all"),
    "stochtree, constant": stochtree(False),
    "stochtree, all": stochtree(True),
}
KEYS = ("replicate", "method")


def one(replicate: int, method: str) -> dict:
    X, y, inside, outside = data(replicate)
    start = time.perf_counter()
    found = np.asarray(METHODS[method](X, y, np.vstack([inside, outside]), replicate))
    seconds = time.perf_counter() - start
    errors = found - truth(np.vstack([inside, outside]))
    rmse = np.sqrt((errors.reshape(2, -1) ** 2).mean(axis=1))
    return {"seconds": seconds, "inside": float(rmse[0]), "outside": float(rmse[1])}


def report(results: pd.DataFrame) -> None:
    """Means over replicates, and their standard errors."""
    print("| leaves | replicates | RMSE inside | RMSE outside |")
    print("|---|---|---|---|")
    for method in METHODS:
        rows = results[results.method == method]
        if not len(rows):
            continue
        parts = [
            f"{rows[name].mean():.3f} ± {rows[name].std() / np.sqrt(len(rows)):.3f}"
            for name in ("inside", "outside")
        ]
        print(f"| {method} | {len(rows)} | {' | '.join(parts)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=10)

    def values(given):
        return range(given.replicates), given.methods

    run_table(parser, "extrapolation.jsonl", METHODS, KEYS, values, one, report)


if __name__ == "__main__":
    main()
