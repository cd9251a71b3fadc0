"""Memory and time of a large table under the grid prior: n = 1,000,000, p = 50, m = 50.

    python -m benchmarks.large_table                # both sizes, each in a process of its own
    python -m benchmarks.large_table --draws 100 --steps hybrid cgm
    python -m benchmarks.large_table --rows 10000000 --draws 10 --storage memmap
    python -m benchmarks.large_table --rows 1000000 --draws 200 --tune 150 --sigma drawn
    python -m benchmarks.large_table --report

The table is of float32, in memory or, with ``--storage memmap``, in a file. The forest and ``mu``
are recorded, as users do it; with ``--mu left-out`` the forest alone, which takes less memory. Time
is that of the forest's step alone after tuning, per training row, tree
and sweep, and of a step on average and in the middle; of all that happens between two steps of the
forest, where ``--sigma drawn`` makes the noise a variable of the model. Memory is the peak of the
process, how much of it was there before the table was made, and the peak of what is its own: pages
of files are memory that the system takes back when it is short. With several chains, one after the
other, R-hat is that of f at 200 of the rows. ``--out`` adds to a file of results.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from time import perf_counter, sleep

RESULTS = Path(__file__).parent / "results" / "large_table.jsonl"
COLUMNS, TREES, CUTS, LOOKED_AT = 50, 50, 100, 200
BLOCK = 1_000_000
"""Rows made at a time."""


def peak_gb():
    """Most memory the process held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


class OwnMemory(threading.Thread):
    """Peak of the process's memory that is no file's, looked at twenty times a second."""

    def __init__(self):
        super().__init__(daemon=True)
        self.gb = 0.0

    def run(self):
        while True:
            lines = Path("/proc/self/status").read_text().splitlines()
            [kb] = [line.split()[1] for line in lines if line.startswith("RssAnon")]
            self.gb = max(self.gb, int(kb) / 2**20)
            sleep(0.05)


def make_table(rng, n, storage):
    """Friedman's function with noise, and (n, 50) inputs of float32 in memory or in a file."""
    import numpy as np

    if storage == "memmap":
        X = np.memmap(tempfile.TemporaryFile(), np.float32, "w+", shape=(n, COLUMNS))
    else:
        X = np.empty((n, COLUMNS), np.float32)
    y = np.empty(n)
    for start in range(0, n, BLOCK):
        x = rng.random((min(BLOCK, n - start), COLUMNS), dtype=np.float32)
        X[start : start + BLOCK] = x
        f = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
        y[start : start + BLOCK] = f + 10 * x[:, 3] + 5 * x[:, 4]
    return X, y + rng.normal(size=n)


def run(n, draws, tune, step_name, chains, storage, sigma, mu_is):
    import arviz as az
    import numpy as np
    import pymc as pm

    import pymc_trees as pmt

    times, begun = [], []

    def timed(cls):
        class Timed(cls):
            def step(self, point):
                start = perf_counter()
                begun.append(start)
                out = super().step(point)
                times.append(perf_counter() - start)
                return out

        return Timed

    before = peak_gb()
    own = OwnMemory()
    own.start()
    X, y = make_table(np.random.default_rng(0), n, storage)
    with pm.Model() as model:
        mu = pmt.BART("mu", X, y, m=TREES, n_cuts=CUTS)
        looked_at = X[:: n // LOOKED_AT][:LOOKED_AT].astype(np.float64)
        del X
        noise = pm.HalfNormal("sigma", 2.0) if sigma == "drawn" else 1.0
        pm.Normal("y", mu, noise, observed=y, shape=mu.shape)
        step = timed({"hybrid": pmt.Hybrid, "cgm": pmt.CGM}[step_name])([mu])
        names = ["mu_forest", "mu"] if mu_is == "recorded" else ["mu_forest"]
        start = perf_counter()
        idata = pm.sample(
            draws,
            tune=tune,
            chains=chains,
            cores=1,
            step=step,
            var_names=names,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
        total = perf_counter() - start
    assert sorted(idata.posterior.data_vars) == sorted(names)
    sweeps = step.kernels[0].n_sweeps_of(step.forests[0])
    parts = [slice(k * (tune + draws) + tune, (k + 1) * (tune + draws)) for k in range(chains)]
    after = np.concatenate([times[part] for part in parts])
    whole = np.concatenate([np.diff(begun[part]) for part in parts])
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
                "mean_seconds_between": float(np.mean(whole)),
                "sigma": sigma,
                "mu": mu_is,
                "chains": chains,
                "rhat": rhat,
                "leaves": float(idata.sample_stats["n_leaves"].values[0, -1]),
                "forest_mb": idata.posterior["mu_forest"].nbytes / 2**20,
                "storage": storage,
                "gb_before": before,
                "gb_own_peak": own.gb,
                "gb_peak": peak_gb(),
            }
        ),
        flush=True,
    )


def report(results):
    """Print the stored results as a table of the docs."""
    early = {"storage": "array", "sigma": "fixed", "mu": "left-out"}
    results = results.assign(**{name: None for name in early if name not in results})
    results = results.fillna(early)
    key = ["n", "step", "storage", "sigma", "mu"]
    latest = results.drop_duplicates(key, keep="last").sort_values(key)
    print(
        "| rows | table | step | chains | draws | mu | s a step, median | mean | all | R-hat | "
        "leaves | peak GB | of its own |"
    )
    print("|---" * 13 + "|")
    for one in latest.itertuples():
        rhat = "" if one.chains == 1 else f"{one.rhat:.2f}"
        whole = one.sigma == "drawn" or one.mu == "recorded"
        all_of_it = f"{one.mean_seconds_between:.3f}" if whole else ""
        own = "" if one.gb_own_peak != one.gb_own_peak else f"{one.gb_own_peak:.2f}"
        print(
            f"| {one.n:,} | {one.storage} | `{one.step}` | {one.chains} | {one.draws} | {one.mu} | "
            f"{one.seconds_per_step:.3f} | {one.mean_seconds_per_step:.3f} | {all_of_it} | "
            f"{rhat} | {one.leaves:.0f} | {one.gb_peak:.2f} | {own} |"
        )
    print(f"forests of the last: {latest.forest_mb.iloc[-1]:.0f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--tune", type=int, default=3)
    parser.add_argument("--steps", nargs="+", default=["hybrid"], choices=["hybrid", "cgm"])
    parser.add_argument("--chains", type=int, default=1)
    parser.add_argument("--storage", default="array", choices=["array", "memmap"])
    parser.add_argument("--sigma", default="fixed", choices=["fixed", "drawn"])
    parser.add_argument("--mu", default="recorded", choices=["recorded", "left-out"])
    parser.add_argument("--out", type=Path, help="file of results to add lines to")
    parser.add_argument("--report", action="store_true", help="print the table of the results")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.report:
        import pandas as pd

        report(pd.read_json(args.out or RESULTS, lines=True))
        return
    if args.inside:
        [n], [step] = args.rows, args.steps
        run(n, args.draws, args.tune, step, args.chains, args.storage, args.sigma, args.mu)
        return
    from benchmarks.tables.lines import add_line  # here: it adds to the memory of a process

    for step in args.steps:
        found = []
        for n in args.rows:
            command = [sys.executable, "-m", "benchmarks.large_table", "--inside", "--rows", str(n)]
            command += ["--draws", str(args.draws), "--tune", str(args.tune), "--steps", step]
            command += ["--chains", str(args.chains), "--storage", args.storage]
            command += ["--sigma", args.sigma, "--mu", args.mu]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                raise SystemExit(done.stderr)
            found.append(json.loads(done.stdout.strip().splitlines()[-1]))
            if args.out is not None:
                add_line(found[-1], args.out)
            print(
                "{step:7s} n = {n:>9,}: {ns_per_row_tree_sweep:6.2f} ns per row, tree and sweep, "
                "{seconds_per_step:.3f} s a step ({mean_seconds_per_step:.3f} on average), R-hat "
                "{rhat:.3f}, {leaves:.0f} leaves, forests {forest_mb:.1f} MB, peak {gb_peak:.2f} "
                "GB ({gb_before:.2f} before), {gb_own_peak:.2f} of its own".format(**found[-1]),
                flush=True,
            )
        ratio = found[-1]["ns_per_row_tree_sweep"] / found[0]["ns_per_row_tree_sweep"]
        print(f"{step}: time per row and tree, last over first size: {ratio:.2f}")


if __name__ == "__main__":
    main()
