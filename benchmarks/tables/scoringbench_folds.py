"""ScoringBench on the sets that are here: ``python -m benchmarks.tables.scoringbench_folds``.

Its protocol: five shuffled folds of at most 3,000 rows under its seed, and its main scores,
computed from the histograms that its wrappers return. Each fit is a line of ``--out``; ``--report``
prints the table.
"""

import argparse
import time

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import KFold

from benchmarks.peers.data import read_table
from benchmarks.tables.laws import Histogram, scores
from benchmarks.tables.lines import run_table
from benchmarks.tables.scoringbench import (
    LEVELS,
    BARTWrapper,
    DistributionPrediction,
    of_quantiles,
)

SEED, FOLDS, ROWS = 42, 5, 3_000
"""Of its ``config.py``."""
SETS = ("boston", "concrete", "energy", "wine_quality_red", "yacht")
KEYS = ("set", "fold", "method")
SHOWN = ("crps", "nll", "rmse", "cover90", "cover95")


class BoostingWrapper:
    """scikit-learn's histogram gradient boosting, a model for each of some levels."""

    levels = np.array([LEVELS[0], 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, LEVELS[-1]])

    def fit(self, X, y):
        self.mean = HistGradientBoostingRegressor(random_state=SEED).fit(X, y)
        self.models = [
            HistGradientBoostingRegressor(loss="quantile", quantile=q, random_state=SEED).fit(X, y)
            for q in self.levels
        ]
        return self

    def predict_distribution(self, X) -> DistributionPrediction:
        edges = np.sort(np.column_stack([one.predict(X) for one in self.models]), axis=1)
        return of_quantiles(self.levels, edges, self.mean.predict(X))


METHODS = {
    "pymc_trees": lambda: BARTWrapper(draws=300, tune=300, random_state=SEED),
    "gradient boosting": BoostingWrapper,
}


def one(name: str, fold: int, method: str) -> dict:
    table = read_table(name)
    if len(table) > ROWS:
        table = table.sample(ROWS, random_state=SEED)
    X, y = table.drop(columns="target"), table.target.to_numpy(dtype=float)
    own, held = list(KFold(FOLDS, shuffle=True, random_state=SEED).split(X))[fold]
    start = time.perf_counter()
    fitted = METHODS[method]().fit(X.iloc[own], y[own])
    seconds = time.perf_counter() - start
    return {"seconds": seconds} | scores(
        Histogram(fitted.predict_distribution(X.iloc[held])), y[held]
    )


def report(found) -> None:
    print("| set, method | folds | " + " | ".join(SHOWN) + " |")
    print("|---|---|" + "---|" * len(SHOWN))
    for (name, method), rows in found.groupby(["set", "method"]):
        said = " | ".join(f"{rows[measure].mean():.3g}" for measure in SHOWN)
        print(f"| {name}, {method} | {len(rows)} | {said} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--folds", type=int, default=FOLDS)

    def values(given):
        return given.sets, range(given.folds), given.methods

    run_table(parser, "scoringbench.jsonl", METHODS, KEYS, values, one, report)


if __name__ == "__main__":
    main()
