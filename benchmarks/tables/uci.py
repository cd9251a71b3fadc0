"""Regression on eight UCI sets with fixed splits: ``python -m benchmarks.tables.uci``.

Each fit is a line of ``--out``, and what is there is not run again; ``--report`` prints the tables.
"""

import argparse
import time

import numpy as np
import pandas as pd

from benchmarks.peers.data import read_table
from benchmarks.tables.laws import scores
from benchmarks.tables.lines import run_table
from benchmarks.tables.methods import METHODS

SETS = (
    "boston",
    "concrete",
    "energy",
    "kin8nm",
    "naval",
    "power_plant",
    "wine_quality_red",
    "yacht",
)
KEYS = ("set", "split", "method")
SHOWN = ("nll", "crps", "rmse", "cover50", "cover90", "cover95", "seconds")


def split_of(name: str, split: int):
    """Training rows, their responses, held-out rows, theirs."""
    table = read_table(name)
    rows = read_table(f"{name}_splits", explained="test_row")
    held = np.isin(np.arange(len(table)), rows.test_row[rows.split == split])
    X = table.drop(columns="target").to_numpy(dtype=float)
    y = table.target.to_numpy(dtype=float)
    return X[~held], y[~held], X[held], y[held]


def one(name: str, split: int, method: str) -> dict:
    X, y, X_new, y_new = split_of(name, split)
    centre, spread = y.mean(), y.std()  # methods that tune nothing to units see the same numbers
    start = time.perf_counter()
    law = METHODS[method](X, (y - centre) / spread, X_new, split)
    seconds = time.perf_counter() - start
    found = scores(law, (y_new - centre) / spread)
    found |= {"nll": found["nll"] + float(np.log(spread))}
    found |= {key: spread * found[key] for key in ("crps", "rmse")}
    return {"seconds": seconds} | found


def report(results: pd.DataFrame) -> None:
    """Tables of means over the splits that all methods of a set have run."""
    for name, of_set in results.groupby("set"):
        splits = sorted(of_set.split.unique())
        print(f"\n{name}, splits {splits[0]} to {splits[-1]}\n")
        print("| method | fits | " + " | ".join(SHOWN) + " |")
        print("|---|---|" + "---|" * len(SHOWN))
        for method, rows in of_set.groupby("method"):
            mean = rows[list(SHOWN)].mean()
            print(f"| {method} | {len(rows)} | " + " | ".join(f"{v:.3g}" for v in mean) + " |")
    mean = results.groupby(["set", "method"]).nll.mean().unstack()
    whole = mean.dropna(axis=1)
    print("\nmean rank of NLL:", whole.rank(axis=1).mean().round(2).to_dict())
    cover = results.groupby(["method", "set"]).cover90.mean().unstack()
    print("\n90% intervals, mean and worst set:")
    print(pd.DataFrame({"mean": cover.mean(axis=1), "worst": cover.min(axis=1)}).round(3))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--splits", type=int, default=5)

    def values(given):
        return given.sets, range(given.splits), given.methods

    run_table(parser, "uci.jsonl", METHODS, KEYS, values, one, report)


if __name__ == "__main__":
    main()
