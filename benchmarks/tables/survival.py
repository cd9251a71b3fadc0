"""Simulated times, beside forests and Cox's model: ``python -m benchmarks.tables.survival``.

Two processes: log times with normal noise about Friedman's function, and Weibull times whose shape
depends on a column, so that hazards are not proportional and curves cross. Each fit is a line of
``--out``, and what is there is not run again; ``--report`` prints the table. Methods from
scikit-survival have its defaults, but for the number of trees.
"""

import argparse
import time as clock
import warnings

import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr
from scipy import stats
from sksurv.ensemble import RandomSurvivalForest
from sksurv.linear_model import CoxPHSurvivalAnalysis

from benchmarks.tables.lines import run_table
from pymc_trees import survival

ROWS, HELD = 400, 500
SHARES = np.linspace(0.05, 0.9, 18)
"""Of the times that were seen in training: quantiles at which curves are compared."""
KEYS = ("process", "replicate", "method")
SHOWN = ("brier", "concordance", "error", "seconds")


class LogTimes:
    """log T = Friedman's function + 0.5 noise, of ten columns."""

    columns = 10

    def law(self, X):
        f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
        return stats.lognorm(0.5, scale=np.exp(0.15 * (f + 10 * X[:, 3] + 5 * X[:, 4] - 14)))

    def censored(self, rng, n):
        return rng.exponential(6.0, n)


class Crossing:
    """Weibull times with shape 0.7 or 2, of ten columns; curves of the two cross."""

    columns = 10

    def law(self, X):
        late = X[:, 0] > 0.5
        return stats.weibull_min(np.where(late, 2.0, 0.7), scale=1.0 + X[:, 1] + 2 * X[:, 2] ** 2)

    def censored(self, rng, n):
        return rng.exponential(4.0, n)


PROCESSES = {"log times": LogTimes(), "crossing": Crossing()}


def drawn(process, rng, n):
    """Columns, times and events."""
    X = rng.random((n, process.columns))
    T, C = process.law(X).rvs(random_state=rng), process.censored(rng, n)
    return X, np.minimum(T, C), T <= C


def sampled(model, seed):
    given = {"progressbar": False, "compute_convergence_checks": False, "cores": 1}
    return pm.sample(500, tune=500, chains=2, model=model, random_seed=seed, **given)


def discrete(X, time, event, new, at, seed):
    model = survival.discrete_time(X, time, event)
    idata = sampled(model, seed)
    return survival.survival_function(idata, model, new, at, progressbar=False)


def log_normal(X, time, event, new, at, seed):
    model = survival.accelerated_failure_time(X, time, event)
    idata = sampled(model, seed)
    return survival.survival_function(idata, model, new, at, progressbar=False)


def by_scikit_survival(estimator):
    """Curves of an estimator, as ours."""

    def fitted(X, time, event, new, at, seed):
        y = np.array(list(zip(event, time, strict=True)), dtype=[("event", bool), ("time", float)])
        steps = estimator(seed).fit(X, y).predict_survival_function(new)
        curves = np.array([step(at) for step in steps])[None, None]
        found = xr.DataArray(curves, {"time": at}, ["chain", "draw", "row", "time"])
        return xr.Dataset({"survival": found}, attrs={"stepwise": 1})

    return fitted


def kaplan_meier(X, time, event, new, at, seed):
    law = stats.ecdf(stats.CensoredData.right_censored(time, ~event)).sf
    curves = np.broadcast_to(law.evaluate(at), (1, 1, len(new), at.size))
    found = xr.DataArray(curves, {"time": at}, ["chain", "draw", "row", "time"])
    return xr.Dataset({"survival": found}, attrs={"stepwise": 1})


METHODS = {
    "discrete_time": discrete,
    "accelerated_failure_time": log_normal,
    "random survival forest": by_scikit_survival(
        lambda seed: RandomSurvivalForest(500, random_state=seed)
    ),
    "Cox": by_scikit_survival(lambda seed: CoxPHSurvivalAnalysis()),
    "Kaplan and Meier": kaplan_meier,
}


def one(name: str, replicate: int, method: str) -> dict:
    process, rng = PROCESSES[name], np.random.default_rng([replicate, len(name)])
    X, time, event = drawn(process, rng, ROWS)
    new, new_time, new_event = drawn(process, rng, HELD)
    at = np.unique(np.quantile(time, SHARES))
    start = clock.perf_counter()
    found = METHODS[method](X, time, event, new, at, replicate)
    seconds = clock.perf_counter() - start
    train = (time, event)
    inside = new_time < time.max()  # where the weights of censoring are known
    found = found.isel(row=np.flatnonzero(inside))
    held = new_time[inside], new_event[inside]
    truth = process.law(new[inside]).sf(at[:, None]).T
    mean = found["survival"].mean(("chain", "draw")).to_numpy()
    return {
        "censored": 1 - float(event.mean()),
        "brier": float(survival.brier_score(found, *held, train=train)["integrated"]),
        "concordance": survival.concordance(found, *held),
        "error": float(np.sqrt(np.mean((mean - truth) ** 2))),
        "seconds": seconds,
    }


def report(results: pd.DataFrame) -> None:
    """Means over replicates and their standard errors."""
    for name, of_process in results.groupby("process", sort=False):
        censored = of_process.censored.mean()
        print(f"\n{name}: {ROWS} rows, {censored:.0%} censored\n")
        print("| method | replicates | " + " | ".join(SHOWN) + " |")
        print("|---|---|" + "---|" * len(SHOWN))
        for method, rows in of_process.groupby("method", sort=False):
            mean, error = rows[list(SHOWN)].mean(), rows[list(SHOWN)].sem()
            cells = [f"{mean[key]:.4f} ± {error[key]:.4f}" for key in SHOWN[:-1]]
            cells.append(f"{mean['seconds']:.3g}")
            print(f"| {method} | {len(rows)} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", nargs="+", default=list(PROCESSES), choices=PROCESSES)
    parser.add_argument("--replicates", type=int, default=10)
    warnings.simplefilter("ignore")

    def values(given):
        return given.processes, range(given.replicates), given.methods

    run_table(parser, "survival.jsonl", METHODS, KEYS, values, one, report)


if __name__ == "__main__":
    main()
