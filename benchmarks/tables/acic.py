"""The effect on the treated in 26 settings of ACIC 2016: ``python -m benchmarks.tables.acic``.

Beside the published estimates of the competition's methods (Dorie, Hill, Shalit, Scott and Cervone
2019). The data are in the folder ``acic2016`` of the one named by ``PYMC_TREES_DATA``; the package
aciccomp2016 of R makes them: ``dgp_2016(input_2016, setting, 1)``. Errors are in sd of y.
"""

import argparse
import time
import warnings
from functools import cache

import arviz as az
import numpy as np
import pandas as pd

from benchmarks.peers.data import read_table
from benchmarks.tables.lines import run_table
from pymc_trees import causal

SETTINGS = tuple(range(1, 77, 3))
KEYS = ("setting", "method")
METHODS = {
    "two forests": {},
    "one forest": {"forests": "one"},
    "a forest for each arm": {"forests": "arms"},
}
SAMPLE = {"draws": 300, "tune": 300, "chains": 2, "cores": 2}
SOURCE = "vdorie/aciccomp"


@cache
def data(setting: int):
    """Covariates, table, and the propensity that all methods share."""
    X = read_table("acic2016/x", SOURCE, explained="x_1")
    table = read_table(f"acic2016/setting{setting:02d}", SOURCE, explained="y")
    return X, table, causal.propensity(X, table.z.to_numpy(), random_state=setting, **SAMPLE)


def by_noise(table, propensity, spread) -> float:
    """Error of an estimate that knows both surfaces, and so errs by the noise of these rows alone.

    The mean noise of the treated, less that of the others weighted to be like them.
    """
    treated = (table.z == 1).to_numpy()
    noise = (table.y - np.where(treated, table.mu1, table.mu0)).to_numpy()
    weights = (propensity / (1 - propensity))[~treated]
    return float(noise[treated].mean() - np.average(noise[~treated], weights=weights)) / spread


def one(setting: int, method: str) -> dict:
    X, table, propensity = data(setting)
    treated = table.z == 1
    truth, spread = float((table.mu1 - table.mu0)[treated].mean()), float(table.y.std())
    forest = causal.BayesianCausalForest(**METHODS[method], random_state=setting, **SAMPLE)
    start = time.perf_counter()
    forest.fit(X, table.y.to_numpy(), table.z.to_numpy(), propensity=propensity)
    satt = forest.satt()
    seconds = time.perf_counter() - start
    low, high = (float(satt.quantile(q)) for q in (0.025, 0.975))
    off = forest.unit_effects().mean(("chain", "draw")).to_numpy() - (table.mu1 - table.mu0)
    as_dataset = satt.to_dataset(name="satt")
    return {
        "error": (float(satt.mean()) - truth) / spread,
        "noise": by_noise(table, propensity, spread),
        "covered": low <= truth <= high,
        "length": (high - low) / spread,
        "unit_error": float(np.sqrt(np.mean(off**2))) / spread,
        "rhat": float(az.rhat(as_dataset)["satt"]),
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
    print("\nR-hat of SATT, median and largest:")
    print(found.groupby("method").rhat.agg(["median", "max"]).round(3).to_string())
    print("\nRMSE but for the noise of these rows, and of that noise alone:")
    rest = (found.error - found.noise) ** 2
    alone = (found.noise**2).groupby(found.method).mean()
    print(
        np.sqrt(pd.DataFrame({"rest": rest.groupby(found.method).mean(), "noise": alone})).round(4)
    )
    print("\nnot covered:")
    print(found[~found.covered][[*KEYS, "error", "noise", "length", "rhat"]].round(4).to_string())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", nargs="+", type=int, default=SETTINGS)
    warnings.simplefilter("ignore")  # of R-hat, which the report shows

    def values(given):
        return given.settings, given.methods

    run_table(parser, "acic.jsonl", METHODS, KEYS, values, one, report)


if __name__ == "__main__":
    main()
