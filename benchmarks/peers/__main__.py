"""Fits every case with every package and writes one table per case.

python -m benchmarks.peers --seconds 60 --out results.md
"""

import argparse
import json
import sys
from functools import partial
from pathlib import Path

from . import budget, data, launch, metrics, table
from .protocol import Problem

EXPLANATION = """\
Chains run one after the other in one process on one core; seconds are summed over chains,
with warm-up and without compilation or prediction. ESS and R-hat (bulk, rank-normalised,
all chains together) of f are medians over 50 held-out rows unless they say otherwise.
RMSE is against the true function where it is known, else against held-out y. "MB before"
is the memory of the process with the package imported. A step of pymc-bart updates a tenth
of the trees unless it is called pymc_bart:all."""


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    add = parser.add_argument
    add("--cases", nargs="+", default=list(data.DEFAULT_CASES), metavar="CASE")
    add(
        "--packages",
        nargs="+",
        default=list(launch.PACKAGES),
        metavar="PACKAGE[:VARIANT]",
        help="pymc_trees:{CGM,GrowPrune,ParticleGibbs,grid,chi} and pymc_bart:all are variants",
    )
    add("--seconds", type=float, help="wall time per chain, warm-up counted")
    add("--warmup", type=int, default=1000, help="iterations, if --seconds is not given")
    add("--draws", type=int, default=1000, help="iterations, if --seconds is not given")
    add("--chains", type=int, default=4)
    add("--keep", type=int, default=4000, help="thin to at most this many draws per chain")
    add("--seed", type=int, default=1)
    add("--timeout", type=float, help="give up on a runner after so many seconds")
    add(
        "--python",
        action="append",
        default=[],
        metavar="PACKAGE=EXECUTABLE",
        help="interpreter of a package that lives in another environment",
    )
    add("--out", type=Path, default=Path("results.md"))
    return parser.parse_args(arguments)


def fit(name, case, options, pythons):
    """One row of the table."""
    package, variant = launch.split_name(name)
    run = partial(
        launch.run,
        package,
        python=pythons.get(package, sys.executable),
        timeout=options.timeout,
    )
    problem = Problem(
        case.X, case.y, case.X_test, case.m, 0, 0, 1, options.chains, options.seed, variant
    )
    if options.seconds:
        problem = budget.for_seconds(run, problem, options.seconds, options.keep)
    else:
        problem = budget.fixed(problem, options.warmup, options.draws, options.keep)
    return metrics.summarise(run(problem), problem, case)


def title(name, case):
    n, p = case.X.shape
    return f"## {name}\n\n{n} rows, {p} columns, {case.m} trees, {len(case.X_test)} held-out rows"


def write(path, sections, rows):
    """Rewritten after every fit, so that an interrupted run keeps what it has."""
    versions = {row["package"].split(":")[0]: row["version"] for row in rows if "version" in row}
    head = f"# pymc_trees and its peers\n\n{table.machine(versions)}.\n\n{EXPLANATION}"
    path.write_text("\n\n".join([head, *sections]) + "\n")
    path.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")


def main(arguments=None):
    options = parse(arguments)
    pythons = dict(item.split("=", 1) for item in options.python)
    for name in options.packages:
        launch.split_name(name)
    sections, rows = [], []
    for case_name in options.cases:
        try:
            case = data.load(case_name)
        except data.MissingData as error:
            print(error, file=sys.stderr)
            sections.append(f"## {case_name}\n\nNot run. {error}")
            write(options.out, sections, rows)
            continue
        here = []
        sections.append("")
        for name in options.packages:
            print(f"{case_name}: {name}", file=sys.stderr)
            row = {"case": case_name, "package": name, "chains": options.chains}
            try:
                row |= fit(name, case, options, pythons)
            except launch.RunnerFailed as error:
                row["error"] = str(error)
            here.append(row)
            rows.append(row)
            sections[-1] = f"{title(case_name, case)}\n\n{table.of_case(here)}"
            write(options.out, sections, rows)
        print(f"\n{sections[-1]}\n")


if __name__ == "__main__":
    main()
