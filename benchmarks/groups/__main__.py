"""Effective draws a second of group effects and of f, beside other packages on the same data.

    python -m benchmarks.groups --python pymc_bart=PATH --out groups.jsonl
    python -m benchmarks.groups --packages pymc_trees dbarts --cases told --seconds 60

`y = f(X) + a[group] + noise`, a ~ Normal(0, tau), with 50 trees: `pm.sample()` of pymc_trees and of
pymc-bart, `rbart_vi` of dbarts and stan4bart (R packages; `R_LIBS` says where they are). Each chain
gets about as many CPU seconds, by a pilot run, half of its steps are warm-up. `told`: a column of X
tells the groups apart. Divided by CPU seconds of all chains with their warm-up; compilation is left
out (R packages come compiled).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import arviz as az
import numpy as np

HERE = Path(__file__).parent
PACKAGES = ("pymc_trees", "dbarts", "stan4bart", "pymc_bart")
IN_R = ("dbarts", "stan4bart")
CASES = {"groups": 0.5, "told": 2.0, "small": 0.2}  # sd of the effects
PILOT = 200


def simulate(case, rows, groups, seed):
    """(n, 2 + 5) table: y, group, X."""
    rng = np.random.default_rng(seed)
    X, group = rng.random((rows, 5)), rng.integers(0, groups, rows)
    group[:groups] = np.arange(groups)
    if case == "told":
        X[:, 0] = group
    y = np.sin(6 * X[:, 1]) + 2 * X[:, 2] * X[:, 3] + CASES[case] * rng.normal(size=groups)[group]
    return np.column_stack([y + rng.normal(0, 0.5, rows), group, X])


def run(package, python, table, draws, chains, seed):
    """CPU seconds, and draws of tau, a and f of one package."""
    with tempfile.TemporaryDirectory() as folder:
        names = ",".join(["y", "group", *(f"x{j}" for j in range(table.shape[1] - 2))])
        np.savetxt(Path(folder) / "data.csv", table, delimiter=",", header=names, comments="")
        program = [python, HERE / "run_python.py"]
        if package in IN_R:
            program = ["Rscript", HERE / "run_r.R"]
        command = [*program, package, folder, *map(str, (draws, chains, seed))]
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
        done = subprocess.run(command, env=os.environ | one, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{package}: {(done.stderr or done.stdout).strip()[-600:]}")

        def read(name):
            return np.fromfile(Path(folder) / f"{name}.bin", "<f8").reshape(chains, draws, -1)

        seconds = float(Path(folder, "seconds.txt").read_text().split()[0])
        return seconds, read("tau")[..., 0], read("a"), read("f")


def main():
    """A table, and a line of JSON for each run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.groups")
    add = parser.add_argument
    add("--packages", nargs="+", default=PACKAGES, choices=PACKAGES)
    add("--cases", nargs="+", default=["groups", "told"], choices=CASES)
    add("--rows", type=int, default=1_000)
    add("--groups", type=int, default=10)
    add("--seconds", type=float, default=60.0, help="CPU seconds a chain")
    add("--chains", type=int, default=4)
    add("--seed", type=int, default=1)
    add("--python", nargs="*", default=[], metavar="PACKAGE=PATH", help="its interpreter")
    add("--out", type=Path)
    options = parser.parse_args()
    pythons = dict(pair.split("=", 1) for pair in options.python)
    for case in options.cases:
        table = simulate(case, options.rows, options.groups, options.seed)
        for package in options.packages:
            python = pythons.get(package, sys.executable)
            pilot, *_ = run(package, python, table, PILOT, 1, 100)
            draws = max(PILOT, int(PILOT * options.seconds / pilot))
            seconds, tau, a, f = run(package, python, table, draws, options.chains, options.seed)
            parts = {"tau": np.log(tau), "mean": a.mean(-1), "contrast": a[..., 1] - a[..., 0]}
            found = {"case": case, "package": package, "rows": options.rows}
            found |= {"groups": options.groups, "draws": draws, "seconds": seconds}
            found |= {f"ESS/s {k}": float(az.ess(v)) / seconds for k, v in parts.items()}
            rows_of_f = np.moveaxis(f, -1, 0)
            found["ESS/s f"] = float(np.median([az.ess(v) for v in rows_of_f])) / seconds
            worst = [float(az.rhat(v)) for v in [*parts.values(), *rows_of_f]]
            found |= {"R-hat": max(worst), "tau": float(tau.mean()), "sd tau": float(tau.std())}
            values = (f"{v:.3g}" if isinstance(v, float) else str(v) for v in found.values())
            print(f"| {' | '.join(values)} |", flush=True)  # noqa: T201
            if options.out is not None:
                with options.out.open("a") as file:
                    file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
