"""Soft and hard trees on Friedman's function: ``python -m benchmarks.soft_bart``.

``y = 10 sin(pi x1 x2) + 20 (x3 - 0.5)^2 + 10 x4 + 5 x5`` and noise of sd 1, columns uniform in
(0, 1), those after the fifth without effect. Each package with its defaults, and `SoftBART` with
the 20 trees that SoftBart has by default as well; two chains of 1,000 draws after 1,000, all on the
same data; judged by f at 1,000 held-out rows.
"""

import argparse
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import pandas as pd
import pymc as pm

import pymc_trees as pmt
from benchmarks.peers import metrics, run_dbarts
from benchmarks.peers.data import friedman_function
from benchmarks.peers.launch import environment
from benchmarks.peers.protocol import Problem
from benchmarks.tables.lines import run_table

ROOT = Path(__file__).parent
ROWS, COLUMNS = (250, 500, 1000), (10, 100)
N_TEST, N_ESS = 1_000, 100
CHAINS, WARMUP, DRAWS = 2, 1_000, 1_000


def data(replicate: int, n: int, p: int):
    """Training rows, their responses, held-out rows and f there: the same for all packages."""
    rng = np.random.default_rng([replicate, n, p])
    X, X_test = rng.random((n, p)), rng.random((N_TEST, p))
    return X, friedman_function(X) + rng.normal(size=n), X_test, friedman_function(X_test)


def clocks():
    """Wall time, and the CPU time of this process, which hardly depends on what runs beside it."""
    return np.array([perf_counter(), process_time()])


def ours(front: str, **settings):
    """A forest of this package, sigma half-normal with the sd of y."""

    def fit(X, y, X_test, seed):
        begun, first = clocks(), []

        def at_first_draw(trace, draw):
            if not first:
                first.append(clocks())

        options = {"progressbar": False, "random_seed": seed}
        with pm.Model(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mu = getattr(pmt, front)("mu", X, y, **settings)
            sigma = pm.HalfNormal("sigma", y.std())
            pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
            idata = pm.sample(
                DRAWS,
                tune=WARMUP,
                chains=CHAINS,
                cores=1,
                callback=at_first_draw,
                compute_convergence_checks=False,
                **options,
            )
            sampled = clocks()
            pm.set_data({"mu_X": X_test})
            predicting = {"var_names": ["mu"], "predictions": True, **options}
            one = idata.map_over_datasets(lambda part: part.isel(draw=[0], missing_dims="ignore"))
            pm.sample_posterior_predictive(one, **predicting)  # what compiling it takes
            compiled = clocks()
            found = pm.sample_posterior_predictive(idata, **predicting)
            predicted = clocks()
        once = compiled - sampled
        seconds, cpu = sampled - first[0] + np.maximum(predicted - compiled - once, 0.0)
        before, before_cpu = first[0] - begun + once
        costs = {"seconds": seconds, "cpu": cpu, "compile": before, "compile_cpu": before_cpu}
        return found.predictions["mu"].to_numpy(), costs | {"version": pmt.__version__}

    return fit


def in_r(package: str):
    """An R package, in a process of its own."""

    def fit(X, y, X_test, seed):
        rscript = shutil.which("Rscript")
        if rscript is None:
            raise ImportError(f"{package}: Rscript is not on the path")
        first = 1 + CHAINS * seed  # chains have seeds of their own
        problem = Problem(X, y, X_test, 0, WARMUP, DRAWS, 1, CHAINS, first, package)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            run_dbarts.write(folder, problem)
            command = [rscript, "--vanilla", str(ROOT / "soft_bart.R"), name, package]
            done = subprocess.run(command, env=environment(), capture_output=True, text=True)
            if "No module named" in done.stderr:
                raise ImportError(f"{package} is not installed in R")
            if done.returncode:
                raise RuntimeError(done.stderr)
            f = np.fromfile(folder / "f.bin", "<f4").reshape(CHAINS, DRAWS, N_TEST)
            costs = dict(line.split(",") for line in (folder / "costs.csv").read_text().split())
        return f, costs | {"seconds": float(costs["seconds"]), "cpu": float(costs["cpu"])}

    return fit


PACKAGES = {
    "ours": ours("SoftBART"),
    "ours_20": ours("SoftBART", m=20),
    "ours_hard": ours("BART"),
    "SoftBart": in_r("SoftBart"),
    "dbarts": in_r("dbarts"),
}
NAMES = {
    "ours": "pymc_trees, SoftBART",
    "ours_20": "pymc_trees, SoftBART, m=20",
    "ours_hard": "pymc_trees, BART",
    "SoftBart": "SoftBart (20 trees)",
}
KEYS = ("replicate", "n", "p", "package")


def judged(f, truth):
    """Error, intervals and mixing of draws of f (chains, draws, rows)."""
    tail = (1 - metrics.LEVEL) / 2
    draws = np.asarray(f, float).reshape(-1, f.shape[2])
    low, high = np.quantile(draws, [tail, 1 - tail], axis=0)
    rows = f[:, :, :: f.shape[2] // N_ESS]
    return {
        "rmse": float(np.sqrt(np.mean((draws.mean(axis=0) - truth) ** 2))),
        "coverage": float(np.mean((low <= truth) & (truth <= high))),
        "length": float(np.mean(high - low)),
        "ess": float(np.median(metrics.of_each(metrics.ess, rows))),
        "rhat": float(np.median(metrics.of_each(metrics.rhat, rows))),
    }


def commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def one(replicate: int, n: int, p: int, package: str) -> dict:
    X, y, X_test, truth = data(replicate, n, p)
    f, costs = PACKAGES[package](X, y, X_test, replicate)
    return judged(f, truth) | costs | {"commit": commit()}


def with_error(values, digits=3):
    if len(values) == 1:
        return f"{values.mean():.{digits}f}"
    return f"{values.mean():.{digits}f} ± {values.std() / np.sqrt(len(values)):.{digits}f}"


def report(results: pd.DataFrame) -> None:
    """Means over replicates, and standard errors of RMSE and coverage; medians of costs."""
    print(
        "| rows | columns | package | replicates | RMSE of f | 90% intervals cover | length "
        "| CPU s | ESS of f | ESS per CPU s | R-hat |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for (n, p), here in results.groupby(["n", "p"]):
        for package in PACKAGES:
            rows = here[here.package == package]
            if not len(rows):
                continue
            parts = [
                n,
                p,
                NAMES.get(package, package),
                len(rows),
                with_error(rows.rmse),
                with_error(rows.coverage),
                f"{rows.length.mean():.2f}",
                f"{rows.cpu.median():.1f}",
                f"{rows.ess.median():.0f}",
                f"{(rows.ess / rows.cpu).median():.1f}",
                f"{rows.rhat.median():.3f}",
            ]
            print(f"| {' | '.join(map(str, parts))} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--columns", type=int, nargs="+", default=list(COLUMNS))
    parser.add_argument("--alone", action="store_true", help="store that nothing ran beside")
    also = {}

    def values(given):
        also["alone"] = given.alone
        return range(given.replicates), given.rows, given.columns, given.methods

    def run(*job):
        return one(*job) | also

    run_table(parser, "soft_bart.jsonl", PACKAGES, KEYS, values, run, report)


if __name__ == "__main__":
    main()
