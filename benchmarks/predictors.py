"""How large is a fitted forest on disk, and how long does it take to the first number?

    python -m benchmarks.predictors

prints, for a fit of each size and package: the size of the file; CPU seconds from the start of a
process until the file is read and has predicted one row; CPU milliseconds of one row once it is
read; and CPU seconds of many rows at 20 draws. Those of all threads count, since other work may
share the machine. The packages keep a fit in their own way: a predictor's file and the draws in
netCDF, pickled trees (pymc-bart), JSON (stochtree), `saveRDS` (dbarts, where R is at hand). For the
netCDF file the first number needs the model, built from the training rows.
"""

import argparse
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np
import pymc as pm

import pymc_trees as pmt

FEW = 20
"""Draws of predictions of many rows."""
SAMPLE = {"progressbar": False, "cores": 1, "compute_convergence_checks": False}


class Kept(NamedTuple):
    """A fit on disk, and what predicts from it in this process."""

    how: str
    path: Path | None
    first: str
    """Code of a process that reads the file and predicts ``row``."""
    one: object
    """Function of an (n, p) array at all draws; None where it is not measured."""
    many: object
    """The same at `FEW` draws."""
    share: float = 1.0
    """Share of its seconds that are those of `FEW` draws, where it takes them all."""


def data(n: int):
    """Five columns, and a response of a smooth function."""
    rng = np.random.default_rng(1)
    X = rng.random((n, 5))
    return X, np.sin(6 * X[:, 0]) + 2 * X[:, 1] * X[:, 2] + rng.normal(0, 0.3, n)


MODEL = """
import numpy as np, pymc as pm, pymc_trees as pmt

def build(X, y, m):
    with pm.Model() as model:
        mu = pmt.BART("mu", pmt.Data("X", X), y, m=m)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
    return model
"""


def of_pymc_trees(n: int, m: int, draws: int, folder: Path) -> list[Kept]:
    """A predictor, and the draws."""
    X, y = data(n)
    space: dict = {}
    exec(MODEL, space)
    model = space["build"](X, y, m)
    idata = pm.sample(draws, tune=200, chains=2, random_seed=1, model=model, **SAMPLE)
    stored = pmt.save(idata, folder / "draws.nc")
    path = pmt.predictor(idata, model).save(folder / "fit.pmt")
    np.savez(folder / "rows.npz", X=X, y=y)
    loaded, few = pmt.load(path), pmt.predictor(idata, model, draws=FEW)
    first = f"""
        import pymc_trees
        print(pymc_trees.load({str(path)!r}).predict([row])[0])
    """
    of_draws = f"""
        with np.load({str(folder / "rows.npz")!r}) as rows:
            model = build(rows["X"], rows["y"], {m})
        idata = pmt.open({str(stored)!r}, model)
        print(float(pmt.predictions(idata, model, [row], progressbar=False)["prediction"].mean()))
    """
    compiled = {"draws": FEW, "progressbar": False, "random_state": 1}
    return [
        Kept("pymc_trees, predictor", path, first, loaded.predict, few.predict),
        Kept(
            "pymc_trees, netCDF",
            stored,
            MODEL + textwrap.dedent(of_draws),
            lambda rows: pmt.predictions(idata, model, rows, progressbar=False),
            lambda rows: pmt.predictions(idata, model, rows, **compiled),
        ),
    ]


def of_pymc_bart(n: int, m: int, draws: int, folder: Path) -> list[Kept]:
    """Its trees, pickled."""
    import pymc_bart as pmb
    from bartrs import PGBART
    from pymc_bart.utils import _get_posterior_sampler

    X, y = data(n)
    with pm.Model():
        mu = pmb.BART("mu", X, y, m=m)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
        step = [PGBART([mu])]
        pm.sample(2 * draws, tune=200, chains=1, random_seed=1, step=step, **SAMPLE)
    trees = _get_posterior_sampler(mu.owner.op)
    try:
        path = folder / "trees.pickle"
        path.write_bytes(pickle.dumps(trees))
        how = "pymc-bart, pickle"
    except TypeError as error:
        path, how = None, f"pymc-bart: {error}"
    total = list(range(2 * draws))
    first = f"""
        import pickle, numpy as np
        trees = pickle.load(open({str(path)!r}, "rb"))
        print(np.mean(trees.sample_posterior(np.array([row]), {total}, None)))
    """
    few = np.linspace(0, 2 * draws - 1, FEW).astype(int).tolist()
    return [
        Kept(
            how,
            path,
            first,
            lambda rows: trees.sample_posterior(np.ascontiguousarray(rows), total, None),
            lambda rows: trees.sample_posterior(np.ascontiguousarray(rows), few, None),
        )
    ]


def of_stochtree(n: int, m: int, draws: int, folder: Path) -> list[Kept]:
    """Its JSON."""
    from stochtree import BARTModel

    X, y = data(n)
    model = BARTModel()
    model.sample(
        X_train=X,
        y_train=y,
        num_gfr=0,
        num_burnin=200,
        num_mcmc=2 * draws,
        general_params={"random_seed": 1, "num_threads": 1},
        mean_forest_params={"num_trees": m},
    )
    path = folder / "fit.json"
    path.write_text(model.to_json())
    first = f"""
        import numpy as np
        from stochtree import BARTModel
        model = BARTModel()
        model.from_json(open({str(path)!r}).read())
        print(np.mean(model.predict(np.array([row]), terms="y_hat")))
    """

    def predict(rows):
        return model.predict(np.asarray(rows), terms="y_hat")

    def of_a_tenth(rows):
        return predict(rows[: len(rows) // 10])

    return [Kept("stochtree, JSON", path, first, predict, of_a_tenth, 10 * FEW / (2 * draws))]


IN_R = """
suppressMessages(library(dbarts))
seconds <- function(call, times) min(replicate(times, sum(system.time(call())[c(1, 2)])))
"""
FIT_IN_R = """
data <- read.csv("data.csv"); X <- as.matrix(data[, 1:5])
fit <- bart(X, data$y, ntree = {m}L, ndpost = {draws}L, nskip = 200L, keeptrees = TRUE,
            verbose = FALSE, seed = 1L, nthread = 1L)
invisible(fit$fit$state)  # or the file has no trees
saveRDS(fit, "fit.rds")
"""
READ_IN_R = """
fit <- readRDS("fit.rds"); row <- matrix({row}, 1)
"""
TIME_IN_R = """
one <- seconds(function() for (k in 1:20) predict(fit, row), 3) / 20
many <- matrix(runif({n_many} * 5), ncol = 5)
cat(one, seconds(function() predict(fit, many), 1))
"""


def line_of_dbarts(n: int, m: int, draws: int, n_many: int) -> str:
    """A line of the table: all of it is timed in R. It predicts by all its draws, so a tenth."""
    row = f"c({', '.join(map(str, np.random.default_rng(2).random(5)))})"
    with tempfile.TemporaryDirectory() as folder:

        def run(code: str) -> str:
            command = ["Rscript", "-e", IN_R + code]
            return subprocess.run(
                command, check=True, cwd=folder, capture_output=True, text=True
            ).stdout

        X, y = data(n)
        header = "a,b,c,d,e,y"
        np.savetxt(f"{folder}/data.csv", np.c_[X, y], delimiter=",", header=header, comments="")
        run(FIT_IN_R.format(m=m, draws=2 * draws))
        size = (Path(folder) / "fit.rds").stat().st_size / 1e6
        read = READ_IN_R.format(row=row)
        first = best(lambda: run(read + "cat(mean(predict(fit, row)))"), 5)
        one, many = map(float, run(read + TIME_IN_R.format(n_many=n_many // 10)).split())
    return (
        f"| {n:,} | {m} | {2 * draws} | dbarts, `saveRDS` | {size:.2f} | {first:.2f} "
        f"| {1e3 * one:.1f} | {many * 10 * FEW / (2 * draws):.1f} |"
    )


PACKAGES = {"pymc_trees": of_pymc_trees, "pymc_bart": of_pymc_bart, "stochtree": of_stochtree}


LONG = 2.0
"""Seconds from which a call is measured once."""


def best(call, times: int) -> float:
    """Least CPU seconds of some calls, those of processes that they start included."""
    seconds: list[float] = []
    while len(seconds) < times and max(seconds, default=0.0) < LONG:
        start = cpu()
        call()
        seconds.append(cpu() - start)
    return min(seconds)


def cpu() -> float:
    """CPU seconds of this process and of those that it started and that have ended."""
    return process_time() + sum(os.times()[2:4])


def in_a_process(code: str) -> None:
    """Run code in a new process."""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def line(kept: Kept, n: int, m: int, draws: int, n_many: int) -> str:
    """A line of the table."""
    rng = np.random.default_rng(2)
    row, many = rng.random(5).tolist(), rng.random((n_many, 5))
    size, first = "", ""
    if kept.path is not None:
        size = f"{kept.path.stat().st_size / 1e6:.2f}"
        code = f"row = {row}\n" + textwrap.dedent(kept.first)
        first = f"{best(lambda: in_a_process(code), 5):.2f}"
    calls = 20
    one = best(lambda: [kept.one(np.array([row])) for _ in range(calls)], 3) / calls
    seconds = best(lambda: kept.many(many), 1) * kept.share
    return (
        f"| {n:,} | {m} | {2 * draws} | {kept.how} | {size} | {first} | {1e3 * one:.1f} "
        f"| {seconds:.1f} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.predictors")
    parser.add_argument("--draws", type=int, default=100, help="of each of two chains")
    parser.add_argument("--many", type=int, default=100_000, help="rows predicted at once")
    names = [*PACKAGES, "dbarts"]
    parser.add_argument("--packages", nargs="+", choices=names, default=names)
    parser.add_argument("--sizes", nargs="+", default=["348x50", "5000x200"], help="rows x trees")
    options = parser.parse_args()
    print(f"import numpy in a new process: {best(lambda: in_a_process('import numpy'), 5):.2f} s\n")
    print(
        "| rows | trees | draws | file | MB | first number, s | one row, ms "
        f"| {options.many:,} rows x {FEW} draws, s |"
    )
    print("|" + "---|" * 8)
    for size in options.sizes:
        n, m = map(int, size.split("x"))
        for package in options.packages:
            if package == "dbarts":
                if shutil.which("Rscript") is not None:
                    print(line_of_dbarts(n, m, options.draws, options.many), flush=True)
                continue
            with tempfile.TemporaryDirectory() as folder:
                try:
                    fits = PACKAGES[package](n, m, options.draws, Path(folder))
                except ImportError as error:
                    print(f"| {n:,} | {m} | {2 * options.draws} | {package}: {error} | | | | |")
                    continue
                for kept in fits:
                    print(line(kept, n, m, options.draws, options.many), flush=True)
    if "dbarts" in options.packages and shutil.which("Rscript") is None:
        print("\ndbarts (`saveRDS`): not at hand, there is no Rscript")


if __name__ == "__main__":
    main()
