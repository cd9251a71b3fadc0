"""Coverage of f by one chain and by four, beside peers, in equal wall time a chain.

    python -m benchmarks.honest.bars --out benchmarks/results/honest.jsonl
    python -m benchmarks.honest.bars --report

Every fit is a process of one core, in the way of `benchmarks.peers`: pilots estimate the speed,
then as many iterations run as fit into the seconds of a chain, the first half warm-up. Each package
has the number of trees that it has by default. A line of results is a fit, or why there is none.
"""

import argparse
from functools import partial
from pathlib import Path

import pandas as pd

from benchmarks.honest.cells import cell
from benchmarks.honest.measures import measured
from benchmarks.peers import budget, launch
from benchmarks.peers.protocol import Problem
from benchmarks.peers.table import markdown
from benchmarks.tables.lines import kept_lines

RESULTS = Path(__file__).parents[1] / "results" / "honest.jsonl"
TREES = {"pymc_trees": 0, "dbarts": 75, "stochtree": 200, "bartz": 200, "xbart": 100}
"""By default; of dbarts in its function ``bart2``; 0 for the default by rows."""
PACKAGES = (
    "pymc_trees",
    "pymc_trees:chi",
    "dbarts",
    "dbarts:1.0",
    "stochtree",
    "stochtree:warm",
    "bartz",
    "xbart",
)
SECONDS = {
    "linear-10000": 8,
    "index-10000": 8,
    "trig-10000": 8,
    "max-10000": 8,
    "linear-10000-levels": 8,
    "index-10000-levels": 8,
    "trig-10000-levels": 8,
    "max-10000-levels": 8,
    "trig-10000-loud": 8,
    "index-10000-loud": 8,
    "trig-10000-t": 8,
    "linear-50000": 12,
    "index-50000": 12,
    "trig-50000": 12,
    "max-50000": 12,
    "trig-250000": 40,
    "friedman-100": 8,
    "friedman-1000": 8,
    "friedman-5000": 12,
    "friedman-5000-quiet": 12,
    "friedman-200000": 30,
    "friedman-1000000": 180,
    "checkerboard-5000": 8,
    "piecewise-1000": 8,
    "shelf-2000": 8,
    "california_housing-200": 8,
    "california_housing-2000": 8,
    "california_housing": 12,
}
"""The cells, and seconds of a chain: He and Hahn (2023), Friedman with Pratola's (2016) two noises,
Tan et al. (2024), and the table of Ronen et al. (2022) by its rows."""
KEEP = 400


def fit(cell_name: str, package: str, chains: int = 4, seed: int = 1) -> dict:
    """Numbers of one fit, or the reason why there are none."""
    case = cell(cell_name)
    run = partial(launch.run, launch.split_name(package)[0])
    name, variant = launch.split_name(package)
    seconds = SECONDS[cell_name]
    problem = Problem(case.X, case.y, case.X_test, TREES[name], 0, 0, 1, chains, seed, variant)
    try:
        problem = budget.for_seconds(run, problem, seconds, KEEP)
        result = run(problem)
    except launch.RunnerFailed as failure:
        return {"rows": len(case.y), "reason": str(failure)}
    found = measured(result.f, result.sigma, case)
    return (
        {"rows": len(case.y), "seconds": seconds, "chains": chains}
        | {"taken": result.seconds / chains, "iterations": problem.n_warmup + problem.n_draws}
        | found
        | {"version": result.version}
    )


def report(results: pd.DataFrame) -> None:
    """A line for each cell and package, and what matters most with a line for each cell."""
    numbers = results.select_dtypes("float")  # readers of JSON differ in the last digits
    results = results.round(dict.fromkeys(numbers, 9))
    print(
        "| cell | package | s a chain | coverage: pool, one chain | width: pool, one | RMSE: pool, "
        "one | ESS of f (least) | R-hat (worst) |\n|---|---|---|---|---|---|---|---|"
    )
    order = {name: k for k, name in enumerate([*SECONDS, *PACKAGES])}
    results = results.sort_values(["cell", "package"], key=lambda names: names.map(order))
    for one in results.itertuples():
        if one.rmse == one.rmse:
            covered = f"{one.coverage:.2f}, {one.coverage_one:.2f}"
            print(
                f"| {one.cell} | {one.package} | {one.taken:.0f} | "
                f"{'' if one.coverage != one.coverage else covered} | "
                f"{short(one.width)}, {short(one.width_one)} | {short(one.rmse)}, "
                f"{short(one.rmse_one)} | {one.ess:.0f} ({one.ess_least:.0f}) | {one.rhat:.2f} "
                f"({one.rhat_worst:.2f}) |"
            )
        else:
            print(f"| {one.cell} | {one.package} | {one.reason} | | | | | |")

    run = results[results.rmse.notna()]
    known, tables = run[run.coverage.notna()], run[run.coverage.isna()]
    by_package(
        known,
        "coverage of pool, one chain",
        lambda one: f"{one.coverage:.2f}, {one.coverage_one:.2f}",
    )
    by_package(known, "RMSE of pool", lambda one: short(one.rmse))
    by_package(known, "log score", lambda one: f"{one.log_score:.3f}")
    by_package(
        tables,
        "RMSE of y by the pool, log score, R-hat of the error",
        lambda one: f"{short(one.rmse)}, {one.log_score:.3f}, {one.rhat_error:.3f}",
    )


def short(number: float) -> str:
    """Three digits, or whole numbers."""
    return f"{number:.0f}" if number >= 1000 else f"{number:#.3g}"


def by_package(results: pd.DataFrame, name: str, text) -> None:
    """The same by package: a line for each cell."""
    cells = results.assign(text=[text(one) for one in results.itertuples()])
    table = cells.pivot(index="cell", columns="package", values="text").fillna("")
    table = table.loc[list(dict.fromkeys(results.cell)), [p for p in PACKAGES if p in table]]
    print("\n" + markdown([name, *table], table.itertuples()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--cells", nargs="+", default=list(SECONDS), choices=SECONDS)
    add("--packages", nargs="+", default=list(PACKAGES))
    add("--out", type=Path, default=RESULTS)
    add("--report", action="store_true")
    args = parser.parse_args()
    jobs = [(name, package) for name in args.cells for package in args.packages]
    report(kept_lines(args.out, ("cell", "package"), () if args.report else jobs, fit))


if __name__ == "__main__":
    main()
