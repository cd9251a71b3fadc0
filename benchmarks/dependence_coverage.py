"""Do intervals of partial dependence cover? ``python -m benchmarks.dependence_coverage``.

A forest, a noise and a response are drawn from the prior, the model is sampled with default steps,
and equal-tailed intervals of the partial dependence are held against that of the forest drawn, at
quantiles of each column.
"""

import argparse
import logging

import numpy as np
import pymc as pm

import pymc_trees as pmt

ROWS, COLUMNS, TREES, POINTS = 100, 3, 20, 10
PROBABILITIES = (0.5, 0.9)


def declare():
    X = np.random.default_rng(5).random((ROWS, COLUMNS))
    X[:, 1] = 0.7 * X[:, 0] + 0.3 * X[:, 1]  # columns that go together
    X[:, 2] = np.floor(4 * X[:, 2])
    with pm.Model() as model:
        response = pm.Data("response", np.zeros(ROWS))
        mu = pmt.BART("mu", X, m=TREES, leaf=pmt.NormalLeaf(0.0, 1.0 / np.sqrt(TREES)))
        sigma = pm.Gamma("sigma", 8, 20)
        pm.Normal("y", mu, sigma, observed=response, shape=mu.shape)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    logging.getLogger("pymc").setLevel(logging.ERROR)
    model = declare()
    with model:
        prior = pm.sample_prior_predictive(arguments.replicates, random_seed=arguments.seed)
    asked = {"grid": POINTS, "progressbar": False}
    inside = {(column, p): [] for column in range(COLUMNS) for p in PROBABILITIES}
    truth = [
        pmt.partial_dependence(prior, model, column, group="prior", **asked)["average"][0]
        for column in range(COLUMNS)
    ]
    y = prior["prior_predictive"]["y"].to_numpy()[0]
    for r in range(arguments.replicates):
        with model:
            pm.set_data({"response": y[r]})
            idata = pm.sample(
                draws=arguments.draws,
                tune=arguments.draws,
                chains=2,
                cores=1,
                random_seed=arguments.seed + r,
                progressbar=False,
                compute_convergence_checks=False,
            )
        for column in range(COLUMNS):
            found = pmt.partial_dependence(idata, model, column, **asked)["average"]
            for p in PROBABILITIES:
                low, high = found.quantile([0.5 - p / 2, 0.5 + p / 2], ("chain", "draw")).to_numpy()
                at = truth[column][r].to_numpy()
                inside[column, p].append(np.mean((at >= low) & (at <= high)))
    print("| column | intervals | replicates | cover | standard error |")
    print("|---|---|---|---|---|")
    for (column, p), shares in inside.items():
        error = np.std(shares, ddof=1) / np.sqrt(len(shares))
        print(f"| x{column} | {p:.0%} | {len(shares)} | {np.mean(shares):.3f} | {error:.3f} |")


if __name__ == "__main__":
    main()
