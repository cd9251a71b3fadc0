"""Time of a sweep of `sample_sharded` over rows and shards, here and in processes of Dask.

    python -m benchmarks.sharded              # measure, store, print
    python -m benchmarks.sharded --report     # print what is stored

m = 50 trees, 10 columns under the grid prior, one chain. A visit of a tree takes what the driver
does, what the message takes there and back, and the rows of a shard: with 100 rows only the first
two are left, and what is beyond them at many rows is the cost of a row.
"""

import argparse
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd

from benchmarks.tables.lines import add_line

RESULTS = Path(__file__).parent / "results" / "sharded.jsonl"
ROWS, TREES, COLUMNS, CUTS = (100, 10_000, 100_000, 1_000_000), 50, 10, 100
PLACES = ("here", "Dask, 1 process", "Dask, 2 processes")


def known_model(n):
    """What is read off a model of Friedman's function."""
    import pymc as pm

    import pymc_trees as pmt
    from pymc_trees.sharded.model import read_model

    rng = np.random.default_rng(0)
    X = rng.random((n, COLUMNS))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3]
    y += 5 * X[:, 4] + rng.normal(size=n)
    with pm.Model() as model:
        mu = pmt.BART("mu", X, y, m=TREES, n_cuts=CUTS)
        pm.Normal("y", mu, 1.0, observed=y)
    return read_model(model)


def time_sweeps(known, held, seconds):
    """Seconds of a sweep, and of it those in which shards were asked; after some to warm up."""
    from pymc_trees.sharded.sample_sharded import Chain

    driver = Chain(known, np.random.default_rng(1), None).driver
    asking = 0.0

    def carry(generator):
        nonlocal asking
        answer = None
        while True:
            try:
                message = generator.send(answer)
            except StopIteration:
                return
            start = perf_counter()
            answer = held.ask({0: message})[0]
            asking += perf_counter() - start

    carry(driver.start())
    for _ in range(5):
        carry(driver.sweep(known.precision))
    asking, sweeps, start = 0.0, 0, perf_counter()
    while sweeps < 3 or perf_counter() - start < seconds:
        carry(driver.sweep(known.precision))
        sweeps += 1
    return (perf_counter() - start) / sweeps, asking / sweeps


def measure(rows, seconds):
    """One row of the results for each number of rows and place."""
    import dask
    from distributed import Client, LocalCluster

    from pymc_trees.sharded.transports import DaskShards, LocalShards

    dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"})
    for n in rows:
        known = known_model(n)
        for place in PLACES:
            if place == "here":
                found = time_sweeps(known, LocalShards(known, 1, 1), seconds)
            else:
                with (
                    LocalCluster(
                        n_workers=int(place.split()[1]),
                        processes=True,
                        threads_per_worker=1,
                        dashboard_address=None,
                    ) as cluster,
                    Client(cluster) as client,
                ):
                    found = time_sweeps(known, DaskShards(known, client, 1), seconds)
            sweep, asking = found
            yield {"rows": n, "place": place, "sweep": sweep, "asking": asking}


def report(results):
    """Times of a sweep, and what they are made of."""
    print("| rows | shards | sweep, ms | of it driver, ms | a visit, ms |")
    print("|---|---|---|---|---|")
    for row in results.itertuples():
        driver = 1000 * (row.sweep - row.asking)
        print(
            f"| {row.rows:,} | {row.place} | {1000 * row.sweep:.0f} | {driver:.0f} | "
            f"{1000 * row.sweep / TREES:.2f} |"
        )
    sweep = results.set_index(["place", "rows"])["sweep"]
    least, most = results["rows"].min(), results["rows"].max()
    for place in PLACES:
        if place in sweep.index:
            slope = (sweep[place, most] - sweep[place, least]) / (most - least) / TREES
            print(f"{place}: {1e9 * slope:.1f} ns a row and visit beyond {least:,} rows")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    if not args.report:
        found = []
        for row in measure(args.rows, args.seconds):
            print(row, flush=True)
            found.append(row)
        RESULTS.write_text("")
        for row in found:
            add_line(row, RESULTS)
    report(pd.read_json(RESULTS, lines=True))


if __name__ == "__main__":
    main()
