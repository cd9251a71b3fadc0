"""How many trees, and how deep, by the number of rows: equal CPU time for every setting.

    python -m benchmarks.honest.defaults --seconds 4 --out benchmarks/results/honest_defaults.jsonl
    python -m benchmarks.honest.defaults --front-end SoftBART --trees 20 50 200
    python -m benchmarks.honest.defaults --report

A Normal with one forest and its sigma through `pm.sample`, four chains one after another. A short
run gives the time of a draw; then each chain takes about so many CPU seconds, its first half
tuning. Real tables are in the folder named by ``PYMC_TREES_DATA``.
"""

import argparse
import logging
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pymc as pm

import pymc_trees as pmt
from benchmarks.honest.cells import cell
from benchmarks.honest.measures import MOST, measured
from benchmarks.tables.lines import kept_lines

RESULTS = Path(__file__).parents[1] / "results" / "honest_defaults.jsonl"
CELLS = (
    "friedman-100",
    "friedman-300",
    "friedman-1000",
    "friedman-3000",
    "friedman-10000",
    "trig-1000",
    "index-1000",
    "linear-1000",
    "trig-10000",
    "index-10000",
    "linear-10000",
    "max-10000",
    "checkerboard-3000",
    "piecewise-1000",
    "yacht",
    "boston",
    "energy",
    "concrete",
    "wine_quality_red",
    "abalone",
    "kin8nm",
    "power_plant",
    "california_housing",
    "protein-20000",
    "trig-50000",
    "friedman-50000",
)
TREES = (50, 200, 400)
BETAS = (2.0, 1.0)
FIRST = 30
CHAINS, SEED = 4, 1


def sampled(model, draws: int, tune: int, chains: int):
    with model:
        return pm.sample(
            draws=draws,
            tune=tune,
            chains=chains,
            cores=1,
            random_seed=SEED,
            progressbar=False,
            compute_convergence_checks=False,
            var_names=["f_forest", "sigma"],
        )


def clocked(run):
    """What a function returns, and its CPU seconds."""
    start = time.process_time()
    made = run()
    return made, time.process_time() - start


def fit(seconds: float, front_end: str, name: str, m: int, beta: float) -> dict[str, float]:
    """The scores of a setting in a cell, in units of the sd of the training y."""
    case = cell(name)
    with pm.Model() as model:
        forest = getattr(pmt, front_end)
        f = forest("f", pm.Data("X", case.X), case.y, m=m, beta=beta)
        pm.Normal("y", f, pm.HalfNormal("sigma", case.y.std()), observed=case.y, shape=f.shape)
    sampled(model, 2, FIRST, 1)  # compiles
    short = clocked(lambda: sampled(model, 2, FIRST, 1))[1]
    longer = clocked(lambda: sampled(model, 2, 3 * FIRST, 1))[1]
    a_draw = max(longer - short, 1e-3) / (2 * FIRST)  # without what a call costs
    half = max(10, int(seconds / (2 * a_draw)))
    idata, cpu = clocked(lambda: sampled(model, half, half, CHAINS))
    idata = idata.isel(draw=slice(None, None, max(1, half // MOST)), missing_dims="ignore")
    with model:
        pm.set_data({"X": case.X_test})
        new = pm.sample_posterior_predictive(
            idata, predictions=True, var_names=["f"], progressbar=False
        )
    draws = new.predictions["f"].to_numpy()
    found = measured(draws, idata.posterior["sigma"].to_numpy(), case)
    sd = float(case.y.std())
    scaled = {key: found[key] / sd for key in ("rmse", "rmse_one", "width", "width_one")}
    shown = {"log_score": found["log_score"] + np.log(sd)}
    return {"rows": len(case.y), "cpu": cpu / CHAINS, "draws": half} | found | scaled | shown


def report(results: pd.DataFrame) -> None:
    """A table for each front end, a line for each cell and setting."""
    for front, table in results.groupby("front_end"):
        print(
            f"\n{front}:\n\n| cell | rows | m, beta | draws | RMSE: pool, one "
            "| coverage: pool, one | log score | R-hat |\n|---|---|---|---|---|---|---|---|"
        )
        for one in table.sort_values(["rows", "cell", "m", "beta"]).itertuples():
            known = one.coverage == one.coverage
            cover = f"{one.coverage:.3f}, {one.coverage_one:.3f}" if known else ""
            print(
                f"| {one.cell} | {one.rows:,} | {one.m}, {one.beta:g} | {one.draws:,} | "
                f"{one.rmse:.4f}, {one.rmse_one:.4f} | {cover} | {one.log_score:.3f} | "
                f"{one.rhat:.3f} ({one.rhat_worst:.2f}) |"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--cells", nargs="+", default=CELLS)
    add("--front-end", default="BART", choices=("BART", "SoftBART"))
    add("--trees", nargs="+", type=int, default=TREES)
    add("--betas", nargs="+", type=float, default=BETAS)
    add("--seconds", type=float, default=4.0, help="CPU seconds of a chain, half of them tuning")
    add("--out", type=Path, default=RESULTS)
    add("--report", action="store_true")
    args = parser.parse_args()
    logging.getLogger("pymc").setLevel(logging.ERROR)
    front = args.front_end
    jobs = [(front, c, m, b) for c in args.cells for m in args.trees for b in args.betas]
    keys = ("front_end", "cell", "m", "beta")
    report(kept_lines(args.out, keys, () if args.report else jobs, partial(fit, args.seconds)))


if __name__ == "__main__":
    main()
