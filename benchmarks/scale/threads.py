"""What threads inside a chain are worth: time of a step by rows and threads.

    python -m benchmarks.scale.threads --out benchmarks/results/threads.jsonl
    python -m benchmarks.scale.threads --report

Friedman's function, ten columns, cuts on a grid, 50 trees. Sweeps of the local moves of `Hybrid`,
by turns with rows in one piece, in blocks, and in blocks with two threads, twenty in a row; the
time is the middle one of a hundred sweeps, after a hundred others.
"""

import argparse
import os
from pathlib import Path
from time import perf_counter

import pandas as pd

from benchmarks.tables.lines import show_line

RESULTS = Path(__file__).parents[1] / "results" / "threads.jsonl"
TREES, CUTS, WARM_UP, IN_A_ROW = 50, 100, 100, 20
IN_ONE_PIECE = 0


def turns(n, threads, steps):
    """Milliseconds of a step for each number of threads, `IN_ONE_PIECE` among them."""
    import numpy as np
    import pymc as pm

    import pymc_trees as pmt
    from benchmarks.peers.data import friedman
    from pymc_trees.core.leaves import threaded
    from pymc_trees.step_methods.hybrid import MOVES

    case = friedman("friedman", n, TREES)
    with pm.Model() as model:
        mu = pmt.BART("mu", case.X, case.y, m=TREES, n_cuts=CUTS, max_nodes=5000)
        pm.Normal("y", mu, 1.0, observed=case.y, shape=mu.shape)
        steps_of = {
            k: pmt.CGM([mu], moves=MOVES, moves_per_visit=4, rng=1, threads=max(k, 1))
            for k in threads
        }
    points = dict.fromkeys(threads, model.initial_point())
    times: dict[int, list[float]] = {k: [] for k in threads}
    for turn in range((WARM_UP + steps) // IN_A_ROW):
        for k, step in steps_of.items():
            threaded.ROWS = np.inf if k == IN_ONE_PIECE else 0
            for _ in range(IN_A_ROW):
                begin = perf_counter()
                points[k], _ = step.step(points[k])
                if turn >= WARM_UP // IN_A_ROW:
                    times[k].append(perf_counter() - begin)
    return {k: 1e3 * float(np.median(of_k)) for k, of_k in times.items()}


def report(results):
    """Print the stored results as a table of the docs."""
    latest = results.drop_duplicates(["n", "threads"], keep="last")
    table = latest.pivot(index="n", columns="threads", values="ms").sort_index()
    named = ["in one piece" if k == IN_ONE_PIECE else f"threads: {k}" for k in table.columns]
    print(f"| rows | {' | '.join(named)} |")
    print("|---" * (1 + len(named)) + "|")
    for n, row in table.iterrows():
        print(f"| {n:,} | {' | '.join(f'{ms:.1f}' for ms in row)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[50_000, 200_000, 1_000_000])
    parser.add_argument("--threads", type=int, nargs="+", default=[IN_ONE_PIECE, 1, 2])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", type=Path, help="file of results to add lines to")
    parser.add_argument("--report", action="store_true", help="print the table of the results")
    args = parser.parse_args()
    if args.report:
        report(pd.read_json(args.out or RESULTS, lines=True))
        return
    for n in args.rows:
        for k, ms in turns(n, args.threads, args.steps).items():
            show_line({"n": n, "threads": k, "ms": ms, "cores": os.cpu_count()}, args.out)


if __name__ == "__main__":
    main()
