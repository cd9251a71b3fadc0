"""Memory and time of a large table under the grid prior: n = 1,000,000, p = 50, m = 50.

    python -m benchmarks.large_table                # both sizes, each in a process of its own
    python -m benchmarks.large_table --draws 100 --steps hybrid cgm
    python -m benchmarks.large_table --report

The forest is recorded and ``mu`` left out. Time is that of the forest's step alone after tuning,
per training row, tree and sweep, and of a step on average and in the middle; memory is the peak of
the process, and how much of it was there before the table was made. With several chains, one after
the other, R-hat is that of f at 200 of the rows. ``--out`` adds to a file of results.
"""

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from time import perf_counter

RESULTS = Path(__file__).parent / "results" / "large_table.jsonl"
COLUMNS, TREES, CUTS, LOOKED_AT = 50, 50, 100, 200


def peak_gb():
    """Most memory the process held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def run(n, draws, tune, step_name, chains):
    import arviz as az
    import numpy as np
    import pymc as pm

    import pymc_trees as pmt

    times = []

    def timed(cls):
        class Timed(cls):
            def step(self, point):
                start = perf_counter()
                out = super().step(point)
                times.append(perf_counter() - start)
                return out

        return Timed

    before = peak_gb()
    rng = np.random.default_rng(0)
    X = rng.random((n, COLUMNS), dtype=np.float32)
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3]
    y += 5 * X[:, 4] + rng.normal(size=n)
    y = y.astype(np.float64)
    with pm.Model() as model:
        mu = pmt.BART("mu", X, y, m=TREES, n_cuts=CUTS)
        looked_at = X[:: n // LOOKED_AT][:LOOKED_AT].astype(np.float64)
        del X
        pm.Normal("y", mu, 1.0, observed=y, shape=mu.shape)
        step = timed({"hybrid": pmt.Hybrid, "cgm": pmt.CGM}[step_name])([mu])
        start = perf_counter()
        idata = pm.sample(
            draws,
            tune=tune,
            chains=chains,
            cores=1,
            step=step,
            var_names=["mu_forest"],
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
        total = perf_counter() - start
    assert list(idata.posterior.data_vars) == ["mu_forest"]
    sweeps = step.parts[0].sweeps_of(step.forests[0])
    after = np.concatenate(
        [times[k * (tune + draws) + tune : (k + 1) * (tune + draws)] for k in range(chains)]
    )
    rhat = np.nan
    if chains > 1:
        f = pmt.predictions(idata, model, looked_at, progressbar=False)
        rhat = float(az.rhat(f["prediction"]).max())
    print(
        json.dumps(
            {
                "n": n,
                "step": step_name,
                "draws": draws,
                "seconds": total,
                "ns_per_row_tree_sweep": 1e9 * float(np.median(after)) / (n * TREES * sweeps),
                "seconds_per_step": float(np.median(after)),
                "mean_seconds_per_step": float(np.mean(after)),
                "chains": chains,
                "rhat": rhat,
                "leaves": float(idata.sample_stats["n_leaves"].values[0, -1]),
                "forest_mb": idata.posterior["mu_forest"].nbytes / 2**20,
                "gb_before": before,
                "gb_peak": peak_gb(),
            }
        ),
        flush=True,
    )


def report(results):
    """Print the stored results as a table of the docs."""
    latest = results.drop_duplicates(["n", "step"], keep="last").sort_values(["n", "step"])
    print("| rows | step | chains | draws | s a step, median | mean | R-hat | leaves | peak GB |")
    print("|---|---|---|---|---|---|---|---|---|")
    for one in latest.itertuples():
        print(
            f"| {one.n:,} | `{one.step}` | {one.chains} | {one.draws} | "
            f"{one.seconds_per_step:.3f} | {one.mean_seconds_per_step:.3f} | {one.rhat:.2f} | "
            f"{one.leaves:.0f} | {one.gb_peak:.2f} |"
        )
    print(f"forests of the last: {latest.forest_mb.iloc[-1]:.0f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--tune", type=int, default=3)
    parser.add_argument("--steps", nargs="+", default=["hybrid"], choices=["hybrid", "cgm"])
    parser.add_argument("--chains", type=int, default=1)
    parser.add_argument("--out", type=Path, help="file of results to add lines to")
    parser.add_argument("--report", action="store_true", help="print the table of the results")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.report:
        import pandas as pd

        report(pd.read_json(args.out or RESULTS, lines=True))
        return
    if args.inside:
        run(args.rows[0], args.draws, args.tune, args.steps[0], args.chains)
        return
    for step in args.steps:
        found = []
        for n in args.rows:
            command = [sys.executable, "-m", "benchmarks.large_table", "--inside", "--rows", str(n)]
            command += ["--draws", str(args.draws), "--tune", str(args.tune), "--steps", step]
            command += ["--chains", str(args.chains)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                raise SystemExit(done.stderr)
            found.append(json.loads(done.stdout.strip().splitlines()[-1]))
            if args.out is not None:
                with args.out.open("a") as file:
                    file.write(json.dumps(found[-1]) + "\n")
            print(
                "{step:7s} n = {n:>9,}: {ns_per_row_tree_sweep:6.2f} ns per row, tree and sweep, "
                "{seconds_per_step:.3f} s a step ({mean_seconds_per_step:.3f} on average), R-hat "
                "{rhat:.3f}, {leaves:.0f} leaves, forests {forest_mb:.1f} MB, "
                "peak {gb_peak:.2f} GB ({gb_before:.2f} before)".format(**found[-1]),
                flush=True,
            )
        ratio = found[-1]["ns_per_row_tree_sweep"] / found[0]["ns_per_row_tree_sweep"]
        print(f"{step}: time per row and tree, last over first size: {ratio:.2f}")


if __name__ == "__main__":
    main()
