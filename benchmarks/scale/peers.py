"""Cost and mixing of four packages against the number of rows, each fit a process of one core.

    python -m benchmarks.scale.peers --out benchmarks/results/scale_peers.jsonl
    python -m benchmarks.scale.peers --report

Friedman's function, ten columns, 50 trees, in the way of `benchmarks.peers`: a pilot estimates the
speed, then as many iterations run as fit into the seconds of a chain, the first half of them
warm-up. An iteration of a peer is one sweep over the trees. One of `pm.sample()` is a step of the
default method, about twenty sweeps at 100 rows and one at a million, and a draw of sigma; its cuts
lie on a grid, as they do in dbarts and bartz. A line of results is a fit, or the reason why there
is none.
"""

import argparse
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace

import pandas as pd

from benchmarks.tables.lines import show_line

RESULTS = Path(__file__).parents[1] / "results" / "scale_peers.jsonl"
PACKAGES = ("pymc_trees:grid", "dbarts", "stochtree", "bartz")
TREES, SEED = 50, 1
KEPT = ("ess_f", "ess_f_per_second", "rhat_f", "rhat_f_max", "rmse", "coverage_f", "version")


def fit(package, n, options):
    """Numbers of one fit, or the reason why there are none."""
    from benchmarks.peers import data, launch
    from benchmarks.peers.__main__ import fit as fit_in_a_process

    line = {"n": n, "package": package, "chains": options.chains, "budget": options.seconds}
    try:
        found = fit_in_a_process(package, data.load(f"friedman-{n}-{TREES}"), options, {})
    except launch.RunnerFailed as failure:
        return line | {"reason": str(failure)}
    return (
        line
        | {"iterations": found["steps"], "seconds": found["seconds"]}
        | {"seconds_per_iteration": 1 / found["sweeps_per_second"]}
        | {"gb_peak": found["mb_peak"] / 1e3}
        | {name: found[name] for name in KEPT}
    )


def report(results):
    """Print the stored results as a table of the docs, and below it why fits are missing."""
    latest = results.drop_duplicates(["n", "package"], keep="last").sort_values(
        ["n", "package"], key=lambda of: of.replace({p: k for k, p in enumerate(PACKAGES)})
    )
    print(
        "| rows | package | ms an iteration | iterations | ESS of f per s | R-hat of f (worst row) "
        "| RMSE | peak GB |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for one in latest.itertuples():
        if one.seconds == one.seconds:
            ms = 1e3 * one.seconds_per_iteration
            print(
                f"| {one.n:,} | {one.package} | {ms:,.{0 if ms > 99 else 2}f} | "
                f"{one.iterations:,.0f} | {one.ess_f_per_second:.2g} | {one.rhat_f:.3f} "
                f"({one.rhat_f_max:.2f}) | {one.rmse:.3f} | {one.gb_peak:.2f} |"
            )
    for one in latest[latest.seconds.isna()].itertuples():
        print(f"- {one.n:,} rows, {one.package}: {one.reason}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--rows", type=int, nargs="+", default=[100, 1000, 10_000, 100_000, 1_000_000])
    add("--packages", nargs="+", default=PACKAGES, choices=PACKAGES)
    add(
        "--seconds",
        type=float,
        nargs="+",
        default=[20, 20, 20, 40, 90],
        help="wall time of a chain, warm-up counted: one number for each of --rows, or one for all",
    )
    add("--chains", type=int, default=2)
    add("--keep", type=int, default=1000, help="thin to at most this many draws per chain")
    add("--timeout", type=float, default=900, help="give up on a fit after so many seconds")
    add("--out", type=Path, help="file of results to add lines to")
    add("--report", action="store_true", help="print the table of the results")
    args = parser.parse_args()
    if args.report:
        report(pd.read_json(args.out or RESULTS, lines=True))
        return
    given = vars(args) | {"seed": SEED}
    for n, seconds in zip(args.rows, cycle(args.seconds)):
        for package in args.packages:
            options = SimpleNamespace(**given | {"seconds": seconds})
            show_line(fit(package, n, options), args.out)


if __name__ == "__main__":
    main()
