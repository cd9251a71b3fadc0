"""Mondrian forests on a stream of 10,000,000 rows within a budget: time a row, memory, error.

    python -m benchmarks.scale.stream --out benchmarks/results/stream.jsonl
    python -m benchmarks.scale.stream --report

Rows come in calls of 10,000, from one law: Friedman's function of ten columns, and five classes by
its quantiles. Every tenth of the stream a line says what the rows since the last took, the memory
of the process beyond that before the forest, and how wrong the predictions of 10,000 rows not in
the stream are: root mean square, or share of wrong classes. The cases run one after the other, each
in a process of its own; ``--out`` is added to.
"""

import argparse
import json
import resource
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from time import process_time

RESULTS = Path(__file__).parents[1] / "results" / "stream.jsonl"
CASES = ("regression", "classes")
CALL, COLUMNS, TREES, MEGABYTES = 10_000, 10, 10, 100


def megabytes():
    """Most memory that the process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def rows_of(case, rng, n, thresholds):
    import numpy as np

    X = rng.random((n, COLUMNS))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    f += 10 * X[:, 3] + 5 * X[:, 4] + rng.normal(size=n)
    return X, (f if case == "regression" else np.digitize(f, thresholds))


def run(case, n_rows, reports):
    import numpy as np

    import pymc_trees as pmt

    rng = np.random.default_rng(1)
    thresholds = np.quantile(rows_of("regression", rng, 100_000, None)[1], [0.2, 0.4, 0.6, 0.8])
    X_new, y_new = rows_of(case, rng, CALL, thresholds)
    kind = pmt.MondrianForestRegressor if case == "regression" else pmt.MondrianForestClassifier

    def forest_of(budget):
        return kind(n_estimators=TREES, max_memory=budget, random_state=1)

    classes = {} if case == "regression" else {"classes": np.arange(5)}
    warm = forest_of(10)  # compiles
    warm.partial_fit(*rows_of(case, rng, 1000, thresholds), **classes)
    warm.predict(X_new)
    before = megabytes()
    forest, spent = forest_of(MEGABYTES), 0.0
    for k in range(1, n_rows // CALL + 1):
        X, y = rows_of(case, rng, CALL, thresholds)
        start = process_time()
        forest.partial_fit(X, y, **classes)
        spent += process_time() - start
        if k % (n_rows // CALL // reports):
            continue
        predicted = forest.predict(X_new)
        wrong = predicted - y_new if case == "regression" else predicted != y_new
        line = {
            "case": case,
            "rows": k * CALL,
            "us_per_row": 1e6 * spent * reports / n_rows,
            "mb": megabytes() - before,
            "error": float(np.sqrt(np.mean(np.square(wrong * 1.0))))
            if case == "regression"
            else float(np.mean(wrong)),
            "leaves": float(np.mean(forest.n_leaves_)),
            "closed": int(np.sum(forest.closed_)),
            "version": version("pymc_trees"),
        }
        print(json.dumps(line), flush=True)
        spent = 0.0


def report(results):
    """Print the stored results as a table of the docs."""
    latest = results.drop_duplicates(["case", "rows"], keep="last").sort_values(["case", "rows"])
    print("| case | rows | microseconds a row | MB | error | leaves of a tree | closed |")
    print("|---|---|---|---|---|---|---|")
    for one in latest.itertuples():
        print(
            f"| {one.case} | {one.rows:,} | {one.us_per_row:.1f} | {one.mb:.0f} | {one.error:.3f} |"
            f" {one.leaves:,.0f} | {one.closed} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--reports", type=int, default=10, help="lines a case, evenly spaced")
    parser.add_argument("--cases", nargs="+", default=CASES, choices=CASES)
    parser.add_argument("--out", type=Path, help="file of results to add lines to")
    parser.add_argument("--report", action="store_true", help="print the table of the results")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.report:
        import pandas as pd

        report(pd.read_json(args.out or RESULTS, lines=True))
        return
    if args.inside:
        run(args.cases[0], args.rows, args.reports)
        return
    from benchmarks.tables.lines import add_line  # here: it adds to the memory of a process

    for case in args.cases:
        command = [sys.executable, "-m", "benchmarks.scale.stream", "--inside", "--cases", case]
        command += ["--rows", str(args.rows), "--reports", str(args.reports)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                print(line, end="", flush=True)
                if args.out is not None:
                    add_line(json.loads(line), args.out)
        if process.returncode:
            raise SystemExit(f"{case}: the process ended with {process.returncode}.")


if __name__ == "__main__":
    main()
