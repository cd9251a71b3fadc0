"""Fewer or more trees, where R-hat of f is high: chains of equal time through `pm.sample`.

    python -m benchmarks.mixing.how_many_trees --seconds 4 --seeds 1 --out trees.jsonl

Friedman's first function with 300 rows, and the square root of the bike rentals. A short run gives
the time of a draw; then each chain takes about `--seconds` of CPU, half of its draws tuning. R-hat
and ESS are those of f at 50 training rows, ESS of all chains per second of a chain with its tuning.
Chains run one after another.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pymc as pm

import pymc_trees as pmt
from benchmarks.peers import data
from benchmarks.peers.metrics import ess, of_each, rhat, spaced_rows
from pymc_trees.datasets import load_bikes

FIRST = 60
"""Draws, and as many of tuning, of the run that gives the time of a draw; one of two compiles."""
COLUMNS = ["hour", "temperature", "humidity", "workingday"]


def declare(X, y, m: int) -> pm.Model:
    """A forest of m trees in the mean of a Normal."""
    with pm.Model() as model:
        mu = pmt.BART("f", X, y, m=m)
        pm.Normal("y", mu, pm.HalfNormal("sigma", y.std()), observed=y, shape=mu.shape)
    return model


def cases() -> dict:
    """Name -> columns, response, and the true function where it is known."""
    friedman, bikes = data.friedman("friedman", 300, 50), load_bikes()
    X, root = bikes[COLUMNS].to_numpy(float), np.sqrt(bikes["count"].to_numpy(float))
    truth = data.friedman_function(friedman.X)
    return {"bikes": (X, root, None), "friedman": (friedman.X, friedman.y, truth)}


def run(model, chains: int, draws: int, seed: int):
    """Draws of f, and the CPU seconds of a chain."""
    start = time.process_time()
    with model:
        idata = pm.sample(
            draws=draws,
            tune=draws,
            chains=chains,
            cores=1,
            random_seed=seed,
            progressbar=False,
            compute_convergence_checks=False,
        )
    return idata.posterior["f"].to_numpy(), (time.process_time() - start) / chains


def measure(model, options, seed: int) -> dict:
    """Agreement of the chains of a model."""
    run(model, 1, 2, seed)  # kernels
    (_, start), (_, first) = (run(model, 1, draws, seed) for draws in (2, FIRST))
    draws = int(options.seconds / max(first - start, 0.05) * FIRST)
    f, seconds = run(model, options.chains, draws, seed)
    some = f[:, :, spaced_rows(f.shape[2])]
    effective, agree = of_each(ess, some), of_each(rhat, some)
    return {
        "draws": draws,
        "seconds": round(seconds, 1),
        "rhat_median": round(float(np.median(agree)), 4),
        "rhat_worst": round(float(agree.max()), 4),
        "share_above_1.01": round(float((agree > 1.01).mean()), 3),
        "ess_per_second": round(float(np.median(effective) / seconds), 2),
        "least_ess_per_second": round(float(effective.min() / seconds), 3),
        "mean": f.mean(axis=(0, 1)),
    }


def main(arguments=None) -> None:
    """Write a line for each case, number of trees and seed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixing.how_many_trees")
    parser.add_argument("--cases", nargs="+", default=list(cases()), choices=list(cases()))
    parser.add_argument("--trees", type=int, nargs="+", default=[20, 50, 100, 200])
    parser.add_argument("--seconds", type=float, default=4.0, help="CPU time of a chain")
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    for seed in options.seeds:
        for case in options.cases:
            X, y, truth = cases()[case]
            for m in options.trees:
                found = measure(declare(X, y, m), options, seed)
                mean = found.pop("mean")
                if truth is not None:
                    found["rmse"] = round(float(np.sqrt(np.mean((mean - truth) ** 2))), 3)
                line = json.dumps({"case": case, "m": m, "seed": seed, **found})
                print(line, flush=True)
                with options.out.open("a") as out:
                    out.write(line + "\n")


if __name__ == "__main__":
    main()
