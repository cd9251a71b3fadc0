"""Bernoulli rows with a probit link, by packages that have no other models of classes.

    python -m benchmarks.likelihoods.probit --package pymc_trees --out probit.json
    python -m benchmarks.likelihoods.probit --package dbarts --out probit.json

Rows of the case `probit`, 50 trees, leaf values of sd 3 / (2 sqrt(50)), chains one after the
other on one thread, 500 + 1,000 iterations. Seconds are of the wall: PyMC's own after warm-up, the
whole of the others by their share of iterations, bartz' second run, since its first compiles. ESS
and R-hat as in `benchmarks.likelihoods`. An iteration is what a package makes of it.
"""

import argparse
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.likelihoods.cases import simulated
from benchmarks.likelihoods.run import N_FOLLOWED
from benchmarks.peers import table
from benchmarks.peers.metrics import ess, of_each, rhat

TREES, TUNE, DRAWS, CHAINS = 50, 500, 1_000, 4
DBARTS = """
s <- read.csv("{folder}/data.csv")
y <- s[[ncol(s)]]
X <- as.matrix(s[, -ncol(s)])
times <- c()
for (chain in 1:{chains}) {{
  set.seed(chain)
  start <- as.numeric(Sys.time())
  fit <- dbarts::bart(X, y, ntree = {trees}, k = 2, nskip = {tune}, ndpost = {draws},
                      verbose = FALSE, keeptrees = FALSE, nthread = 1)
  times <- c(times, as.numeric(Sys.time()) - start)
  writeBin(c(t(fit$yhat.train)), file.path("{folder}", paste0(chain, ".bin")), endian = "little")
}}
writeLines(format(times), file.path("{folder}", "times.txt"))
"""


def rows():
    """Inputs and classes, as in `cases.probit`."""
    rng, X, f = simulated()
    return X, (f + rng.normal(size=f.size) > 0).astype(int)


def by_pymc_trees(X, y):
    import pymc as pm

    import pymc_trees as pmt

    with pm.Model():
        f = pmt.BART("f", X, m=TREES, leaf=pmt.NormalLeaf(0.0, 1.5 / np.sqrt(TREES)))
        pm.Bernoulli("y", p=pm.math.invprobit(f), observed=y)
        options = {"chains": CHAINS, "cores": 1, "progressbar": False}
        options |= {"compute_convergence_checks": False}
        pm.sample(draws=2, tune=2, random_seed=1, **options)
        clock: list[float] = []
        options["callback"] = lambda trace, draw: clock.append(perf_counter())
        idata = pm.sample(draws=DRAWS, tune=TUNE, random_seed=2, **options)
    times = np.array(clock).reshape(CHAINS, -1)
    return idata.posterior["f"].to_numpy(), float((times[:, -1] - times[:, TUNE - 1]).sum())


def by_stochtree(X, y):
    from stochtree import BARTModel, OutcomeModel

    f, seconds = [], 0.0
    link = OutcomeModel(outcome="binary", link="probit")
    for seed in range(CHAINS):
        start, model = perf_counter(), BARTModel()
        model.sample(
            X_train=X,
            y_train=y.astype(float),
            num_gfr=0,
            num_burnin=TUNE,
            num_mcmc=DRAWS,
            general_params={"random_seed": seed, "num_threads": 1, "outcome_model": link},
            mean_forest_params={
                "num_trees": TREES,
                "min_samples_leaf": 1,
                "sample_sigma2_leaf": False,
                "sigma2_leaf_init": 2.25 / TREES,
            },
        )
        seconds += perf_counter() - start
        f.append(model.predict(X, terms="y_hat", scale="linear").T)
    return np.array(f), seconds * DRAWS / (TUNE + DRAWS)


def by_bartz(X, y):
    from bartz import Bart

    f, seconds = [], []
    for seed in (0, *range(CHAINS)):
        start = perf_counter()
        model = Bart(
            X.T.astype(np.float32),
            y.astype(np.float32),
            outcome_type="binary",
            num_trees=TREES,
            n_burn=TUNE,
            n_save=DRAWS,
            num_chains=None,
            seed=seed,
            printevery=None,
            pbar=False,
        )
        latent = np.asarray(model.predict(X.T.astype(np.float32), kind="latent_samples"))
        seconds.append(perf_counter() - start)
        f.append(latent)
    return np.array(f[1:]), sum(seconds[1:]) * DRAWS / (TUNE + DRAWS)


def by_dbarts(X, y):
    rscript = shutil.which("Rscript")
    if rscript is None:
        raise ModuleNotFoundError("No module named 'dbarts': Rscript is not on the path")
    with tempfile.TemporaryDirectory() as folder:
        header = ",".join(f"x{j}" for j in range(X.shape[1])) + ",y"
        table_of = np.column_stack([X, y])
        np.savetxt(f"{folder}/data.csv", table_of, delimiter=",", header=header, comments="")
        counts = {"chains": CHAINS, "trees": TREES, "tune": TUNE, "draws": DRAWS}
        script = Path(folder, "run.R")
        script.write_text(DBARTS.format(folder=folder, **counts))
        subprocess.run([rscript, "--vanilla", str(script)], check=True)
        f = [np.fromfile(f"{folder}/{k}.bin").reshape(DRAWS, -1) for k in range(1, CHAINS + 1)]
        seconds = np.loadtxt(f"{folder}/times.txt").sum()
    return np.array(f), float(seconds * DRAWS / (TUNE + DRAWS))


PACKAGES = {
    "pymc_trees": by_pymc_trees,
    "dbarts": by_dbarts,
    "stochtree": by_stochtree,
    "bartz": by_bartz,
}
HEADER = ["package", "ms an iteration", "ESS of f per s (least)", "R-hat of f (worst)"]


def measure(package):
    """Numbers of a row of the table."""
    f, seconds = PACKAGES[package](*rows())
    followed = np.linspace(0, f.shape[2] - 1, N_FOLLOWED).round().astype(int)
    effective, agree = of_each(ess, f[:, :, followed]), of_each(rhat, f[:, :, followed])
    return {
        "ms": 1e3 * seconds / (CHAINS * DRAWS),
        "ess": float(np.median(effective) / seconds),
        "least": float(effective.min() / seconds),
        "rhat": float(np.median(agree)),
        "worst": float(agree.max()),
        "mean": float(f.mean()),
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.likelihoods.probit")
    parser.add_argument("--package", choices=list(PACKAGES), default="pymc_trees")
    parser.add_argument("--out", type=Path, help="JSON with every number, added to")
    options = parser.parse_args(arguments)
    known = options.out and options.out.exists()
    kept = json.loads(options.out.read_text()) if known else {}
    kept[options.package] = measure(options.package)
    if options.out:
        options.out.write_text(json.dumps(kept, indent=1))
    cells = [
        [
            name,
            f"{one['ms']:.2f}",
            f"{one['ess']:.1f} ({one['least']:.1f})",
            f"{one['rhat']:.3f} ({one['worst']:.2f})",
        ]
        for name, one in kept.items()
    ]
    print(table.markdown(HEADER, cells))


if __name__ == "__main__":
    main()
