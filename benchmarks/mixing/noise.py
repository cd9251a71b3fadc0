"""What does slice sampling of what makes up the sd of the rows bring, beside NUTS?

    python -m benchmarks.mixing.noise
    python -m benchmarks.mixing.noise --models meta --draws 4000

The steps of `pm.sample()`, and the same with NUTS for the noise, one chain each, in turn. Reported
are the least effective sample size (ESS) among the numbers of the noise in all draws and a second,
divergences, and milliseconds a draw, tuning included. Times are CPU times of one process: the
machine may be shared.
"""

import argparse
import logging
import time

import numpy as np
import pymc as pm

import pymc_trees as pmt
from benchmarks.peers import table
from benchmarks.peers.metrics import ess


def data(rows: int):
    rng = np.random.default_rng(1)
    X = rng.random((rows, 5))
    return rng, X, np.sin(6 * X[:, 0]) + X[:, 1], rng.normal(size=rows)


def observed(rows, sd, true_sd):
    """Rows around a forest of 20 trees."""
    _, X, f, noise = data(rows)
    y = f + noise * true_sd
    pm.Normal("y", pmt.BART("f", X, y, m=20), sd, observed=y)


def meta(rows):
    """Known errors of each row, and one sd beside them."""
    known = np.random.default_rng(2).uniform(0.1, 0.6, rows)
    sd = pm.math.sqrt(pm.HalfNormal("sigma") ** 2 + known**2)
    observed(rows, sd, np.sqrt(0.2**2 + known**2))


def groups(rows):
    """An sd for each of four groups."""
    group = np.arange(rows) % 4
    sd = pm.HalfNormal("sigma", shape=4)[group]
    observed(rows, sd, np.array([0.2, 0.4, 0.6, 0.8])[group])


def regression(rows):
    """The log of the sd is linear in a column."""
    _, X, _, _ = data(rows)
    sd = pm.math.exp(pm.Normal("a") + pm.Normal("b") * X[:, 2])
    observed(rows, sd, np.exp(-1.5 + X[:, 2]))


def hierarchy(rows):
    """An sd for each of four groups, made of a mean, a spread and standard normals."""
    group = np.arange(rows) % 4
    sd = pm.math.exp(pm.Normal("a") + pm.HalfNormal("b") * pm.Normal("z", shape=4))[group]
    observed(rows, sd, np.array([0.2, 0.4, 0.6, 0.8])[group])


def of_entries(drawn: np.ndarray) -> list[float]:
    """ESS of each entry of a variable, of (chains, draws, ...) numbers."""
    flat = drawn.reshape(*drawn.shape[:2], -1)
    return [float(ess(flat[..., k])) for k in range(flat.shape[2])]


MODELS = {"meta": meta, "groups": groups, "regression": regression, "hierarchy": hierarchy}


def run(name: str, rows: int, draws: int, with_nuts: bool) -> list:
    """One line of the table."""
    options = {"chains": 1, "cores": 1, "progressbar": False, "compute_convergence_checks": False}
    with pm.Model() as model:
        MODELS[name](rows)
        of_noise = [rv for rv in model.free_RVs if rv.name != "f_forest"]

        def sampled(draws, seed):
            step = [pm.NUTS(of_noise)] if with_nuts else None
            return pm.sample(draws, tune=draws, step=step, random_seed=seed, **options)

        sampled(5, 1)  # compiles
        begun = time.process_time()
        found = sampled(draws, 2)
        seconds = time.process_time() - begun
    least = min(float(np.min(of_entries(found.posterior[rv.name].values))) for rv in of_noise)
    stats = found.sample_stats
    diverging = int(stats["diverging"].sum()) if "diverging" in stats else 0
    steps = "NUTS" if with_nuts else "NoiseScale"
    per_draw = f"{1000 * seconds / (2 * draws):.2f}"
    return [name, steps, f"{least:.0f}", f"{least / seconds:.0f}", str(diverging), per_draw]


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixing.noise")
    parser.add_argument("--models", nargs="*", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--draws", type=int, default=1000)
    given = parser.parse_args()
    logging.getLogger("pymc").setLevel(logging.ERROR)
    lines = [
        run(name, given.rows, given.draws, with_nuts)
        for name in given.models
        for with_nuts in (True, False)
    ]
    header = ["model", "steps", "least ESS", "ESS/s", "divergences", "ms a draw"]
    print(table.markdown(header, lines))


if __name__ == "__main__":
    main()
