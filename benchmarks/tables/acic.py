"""The effect on the treated in 26 settings of ACIC 2016: ``python -m benchmarks.tables.acic``.

Beside the published estimates of the competition's methods (Dorie, Hill, Shalit, Scott and Cervone
2019). The data are in the folder ``acic2016`` of the one named by ``PYMC_TREES_DATA``; the package
aciccomp2016 of R makes them: ``dgp_2016(input_2016, setting, 1)``. Errors are in sd of y.
"""

import argparse
import itertools
import logging
import time
import warnings
from pathlib import Path

import arviz as az
import numpy as np
import pandas as pd

from benchmarks.peers.data import read_table
from benchmarks.tables.lines import kept_lines
from pymc_trees import causal

SETTINGS = tuple(range(1, 77, 3))
KEYS = ("setting", "method")
METHODS = {
    "two forests": {},
    "one forest": {"forests": "one"},
    "a forest for each arm": {"forests": "arms"},
}
SOURCE = "vdorie/aciccomp"


def one(setting: int, method: str, **given) -> dict:
    X = read_table("acic2016/x", SOURCE, explained="x_1")
    table = read_table(f"acic2016/setting{setting:02d}", SOURCE, explained="y")
    treated = table.z == 1
    truth, spread = float((table.mu1 - table.mu0)[treated].mean()), float(table.y.std())
    settings = {"draws": 500, "tune": 500, "chains": 4, "random_state": setting} | given
    forest = causal.BayesianCausalForest(**METHODS[method], **settings)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        satt = forest.fit(X, table.y.to_numpy(), table.z.to_numpy()).satt()
    seconds = time.perf_counter() - start
    low, high = (float(satt.quantile(q)) for q in (0.025, 0.975))
    error = np.sqrt(
        np.mean((forest.unit_effects().mean(("chain", "draw")) - table.mu1 + table.mu0) ** 2)
    )
    return {
        "error": (float(satt.mean()) - truth) / spread,
        "covered": low <= truth <= high,
        "length": (high - low) / spread,
        "unit_error": float(error) / spread,
        "rhat": float(az.rhat(satt.to_dataset(name="satt"))["satt"]),
        "ess": float(az.ess(satt.to_dataset(name="satt"))["satt"]),
        "seconds": seconds,
    }


def published() -> pd.DataFrame:
    table = read_table("acic2016/published_estimates", SOURCE, explained="estimate")
    return pd.DataFrame(
        {
            "method": table.method,
            "setting": table.setting,
            "error": (table.estimate - table.satt) / table.sd_y,
            "covered": (table.lower <= table.satt) & (table.satt <= table.upper),
            "length": (table.upper - table.lower) / table.sd_y,
        }
    )


def report(found: pd.DataFrame) -> None:
    both = pd.concat([found, published()])
    both["squared"] = both.error**2
    means = both[both.setting.isin(found.setting)].groupby("method")
    table = means[["squared", "covered", "length", "unit_error", "seconds"]].mean()
    table.insert(0, "RMSE", np.sqrt(table.pop("squared")))
    table["settings"] = means.size()
    print(table.sort_values("RMSE").round(4).to_string())
    print("\nlargest R-hat of SATT:", found.groupby("method").rhat.max().round(3).to_dict())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", nargs="+", type=int, default=SETTINGS)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--out", type=Path, default=Path("acic.jsonl"))
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    logging.getLogger("pymc").setLevel(logging.ERROR)
    jobs = itertools.product(arguments.settings, arguments.methods)
    report(kept_lines(arguments.out, KEYS, () if arguments.report else jobs, one))


if __name__ == "__main__":
    main()
