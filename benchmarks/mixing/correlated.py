"""What does integrating out leaf values bring where outputs have correlated errors?

    python -m benchmarks.mixing.correlated
    python -m benchmarks.mixing.correlated --outputs 3 --draws 1000

The steps of `pm.sample()` for forests in the mean of an MvNormal with an LKJ prior, one chain:
leaf values integrated out given the other outputs, and the same with the general likelihood of
rows (`targets.rowwise`), which such models had before. Reported are milliseconds a draw, tuning
included, those of the forests' step alone, and effective sample sizes (ESS) of f, the median and
the 5% quantile over outputs and rows. Times are CPU times of one process: the machine may be
shared.
"""

import argparse
import logging
import time

import numpy as np
import pymc as pm

import pymc_trees as pmt
from benchmarks.peers import table
from benchmarks.peers.metrics import ess
from pymc_trees.targets import choose
from pymc_trees.targets.joint import JointTarget
from pymc_trees.targets.rowwise import RowwiseTarget

SD, CORRELATION = 0.5, 0.7


def declare(rows: int, k: int, trees: int) -> None:
    """Outputs that move with columns of their own, and errors that move together."""
    rng = np.random.default_rng(1)
    X = rng.random((rows, 5))
    f = np.stack([np.sin(6 * X[:, j]) + X[:, (j + 1) % 5] for j in range(k)], axis=1)
    cov = SD**2 * (CORRELATION + (1 - CORRELATION) * np.eye(k))
    y = f + rng.multivariate_normal(np.zeros(k), cov, rows)
    leaf = pmt.NormalLeaf(y.mean() / trees, y.std() / np.sqrt(trees))
    mean = pmt.BART("f", X, m=trees, leaf=leaf, shape=(k, rows))
    of_sd = pm.HalfNormal.dist(1.0, shape=k)
    chol, _, _ = pm.LKJCholeskyCov("chol", n=k, eta=2.0, sd_dist=of_sd)
    pm.MvNormal("y", mean.T, chol=chol, observed=y, shape=mean.T.shape)


def run(given, k: int, general: bool) -> list:
    """One line of the table."""
    options = {"chains": 1, "cores": 1, "progressbar": False, "compute_convergence_checks": False}
    before = list(choose.TARGETS)
    if general:
        choose.TARGETS[:] = [RowwiseTarget, JointTarget]
    try:
        with pm.Model() as model:
            declare(given.rows, k, given.trees)
            step = pmt.Hybrid()
            sample = {"step": [step], "random_seed": 2} | options
            pm.sample(5, tune=5, **sample)  # compiles
            begun = time.process_time()
            found = pm.sample(given.draws, tune=given.draws, **sample)
            seconds = time.process_time() - begun
            point = model.initial_point()
            for name in point:
                if name.endswith("_forest"):
                    point[name] = found.posterior[name].values[0, -1]
            step.setup_chain(np.random.default_rng(3), 0, 50)
            point, _ = step.step(point)
            alone = time.process_time()
            for _ in range(50):
                point, _ = step.step(point)
            alone = (time.process_time() - alone) / 50
    finally:
        choose.TARGETS[:] = before
    f = found.posterior["f"].values
    sizes = [float(ess(f[..., j, i])) for j in range(k) for i in range(0, given.rows, 5)]
    middle, low = np.quantile(sizes, [0.5, 0.05])
    return [
        str(k),
        "rows in general" if general else "integrated out",
        f"{1000 * seconds / (2 * given.draws):.2f}",
        f"{1000 * alone:.2f}",
        f"{middle:.0f}",
        f"{low:.0f}",
        f"{middle / seconds:.1f}",
        f"{low / seconds:.1f}",
    ]


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixing.correlated")
    parser.add_argument("--outputs", nargs="*", type=int, default=[2, 3])
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--draws", type=int, default=500)
    given = parser.parse_args()
    logging.getLogger("pymc").setLevel(logging.ERROR)
    lines = [run(given, k, general) for k in given.outputs for general in (True, False)]
    header = ["outputs", "leaf values", "ms a draw", "ms a step", "median ESS of f", "5%"]
    print(table.markdown([*header, "median ESS/s", "5% ESS/s"], lines))


if __name__ == "__main__":
    main()
