"""Runs pymc_trees or pymc-bart: python run_python.py PACKAGE FOLDER DRAWS CHAINS SEED.

The folder has `data.csv` (y, group, columns of X); `f.bin`, `a.bin`, `tau.bin`, `seconds.txt` are
written into it. The model is that of `rbart_vi` and of stan4bart with priors of the same scale.
"""

import sys
import time
from pathlib import Path

import numpy as np
import pymc as pm

TREES, ROWS_OF_F = 50, 50


def forest_of(package, X, y):
    """The random variable f of a package, and what else `pm.sample` is given."""
    if package == "pymc_trees":
        import pymc_trees

        return pymc_trees.BART("f", X, y, m=TREES)
    import pymc_bart

    return pymc_bart.BART("f", X, y, m=TREES)


def main(package, folder, draws, chains, seed):
    """Sample, and write draws (chain, draw, ...) and CPU seconds."""
    table = np.loadtxt(Path(folder) / "data.csv", delimiter=",", skiprows=1)
    y, group, X = table[:, 0], table[:, 1].astype(int), table[:, 2:]
    kept = []
    seconds = 0.0
    for chain in range(chains):  # models of their own: pymc-bart does not start afresh
        with pm.Model():
            f = forest_of(package, X, y)
            tau = pm.HalfNormal("tau", 2.5 * y.std())
            a = pm.Normal("a", 0.0, tau, shape=int(group.max()) + 1)
            sigma = pm.HalfNormal("sigma", y.std())
            pm.Normal("y", f + a[group], sigma, observed=y)
            quiet = {
                "progressbar": False,
                "compute_convergence_checks": False,
                "chains": 1,
                "cores": 1,
            }
            if not chain:
                pm.sample(2, tune=2, random_seed=1, **quiet)  # compiles
            start = time.process_time()
            one = pm.sample(draws, tune=draws, random_seed=seed + chain, **quiet)
            seconds += time.process_time() - start
        one = one["posterior"]
        kept.append([one[name].to_numpy()[0] for name in ("tau", "a", "f")])
    for name, values in zip(("tau", "a", "f"), zip(*kept, strict=True), strict=True):
        stacked = np.stack(values)
        if name == "f":
            stacked = stacked[..., :ROWS_OF_F]
        stacked.astype("<f8").tofile(Path(folder) / f"{name}.bin")
    Path(folder, "seconds.txt").write_text(str(seconds))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *(int(v) for v in sys.argv[3:6]))
