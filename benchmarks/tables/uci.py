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
TITLES = {
    "nll": "Negative log-likelihood of a held-out row",
    "crps": "CRPS, in units of y",
    "rmse": "RMSE, in units of y",
    "cover50": "Held-out rows in 50% intervals",
    "cover90": "Held-out rows in 90% intervals",
    "cover95": "Held-out rows in 95% intervals",
    "seconds": "Seconds for fit and prediction",
}
SHOWN = tuple(TITLES)


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
    """A table of each measure: means over the splits that all methods shown for a set have run."""
    order = [method for method in METHODS if method in set(results.method)]
    results, splits = shared(results)
    for measure in SHOWN:
        print(f"\n**{TITLES[measure]}**\n")
        print("| set | splits | " + " | ".join(order) + " |")
        print("|---|---|" + "---|" * len(order))
        mean = results.groupby(["set", "method"])[measure].mean()
        for name in SETS:
            if name in splits:
                cells = [mean.get((name, method), np.nan) for method in order]
                said = " | ".join("" if np.isnan(v) else f"{v:.3g}" for v in cells)
                print(f"| {name} | {splits[name]} | {said} |")
    nll = results.groupby(["set", "method"]).nll.mean().unstack()
    everywhere = nll.dropna(axis=1)
    ranks = everywhere.rank(axis=1).mean()
    cover = results.groupby(["method", "set"]).cover90.mean().unstack()
    print("\n| | " + " | ".join(order) + " |")
    print("|---|" + "---|" * len(order))
    for said, numbers, form in (
        ("mean rank by NLL (1 is best)", ranks, ".2f"),
        ("90% intervals cover, mean of the sets", cover.mean(axis=1), ".3f"),
        ("90% intervals cover, worst set", cover.min(axis=1), ".3f"),
    ):
        cells = [format(numbers[one], form) if one in numbers else "" for one in order]
        print(f"| {said} | {' | '.join(cells)} |")


def shared(results: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, int]]:
    """Results of the splits of a set that all of its methods have run, and how many these are."""
    kept, splits = [], {}
    for name, of_set in results.groupby("set"):
        counts = of_set.groupby("split").method.nunique()
        common = counts.index[counts == of_set.method.nunique()]
        kept.append(of_set[of_set.split.isin(common)])
        splits[str(name)] = len(common)
    return pd.concat(kept), splits


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--splits", type=int, default=5)

    def values(given):
        return given.sets, range(given.splits), given.methods

    run_table(parser, "uci.jsonl", METHODS, KEYS, values, one, report)


if __name__ == "__main__":
    main()
