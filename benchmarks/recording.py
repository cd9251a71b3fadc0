"""What recording f adds to a draw of `pm.sample`: with ``mu`` among `var_names`, and without.

    python -m benchmarks.recording --sizes 1000x50 1000x200 10000x50 10000x200 100000x50 100000x200
    python -m benchmarks.recording --cores 2

Both runs are made in turns, three times each, and the least of their medians counts. CPU time is
that of the process that records: of a chain and its records with one core, of the records alone
with several, where chains run in processes and only the wall time has them all.
"""

import argparse
import time

import numpy as np
import pymc as pm

import pymc_trees as pmt

SIZES = ["1000x50", "1000x200", "10000x50", "10000x200", "100000x50", "100000x200"]


def friedman(n, p=10):
    """Friedman's first function with noise of sd 1."""
    rng = np.random.default_rng(0)
    X = rng.random((n, p))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return X, f + 10 * X[:, 3] + 5 * X[:, 4] + rng.normal(size=n)


def run(model, names, draws, cores, step):
    """CPU and wall milliseconds of a draw, medians of the last two thirds."""
    marks = []
    with model:
        pm.sample(
            draws,
            tune=draws // 2,
            chains=cores,
            cores=cores,
            step=None if step is None else getattr(pmt, step)(),
            var_names=names,
            random_seed=1,
            callback=lambda trace, draw: marks.append((time.process_time(), time.perf_counter())),
            progressbar=False,
            quiet=True,
            compute_convergence_checks=False,
        )
    each = np.diff(np.array(marks), axis=0)[len(marks) // 3 :]
    return 1e3 * np.median(each, axis=0) if cores == 1 else 1e3 * each.mean(axis=0) * cores


def main():
    """Print a line for each size."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recording", description=__doc__)
    parser.add_argument("--sizes", nargs="+", default=SIZES)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--step", help="a step of the package; default: that of pm.sample")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    for size in options.sizes:
        n, m = map(int, size.split("x"))
        X, y = friedman(n)
        with pm.Model() as model:
            mu = pmt.BART("mu", X, y, m=m)
            sigma = pm.HalfNormal("sigma", 1)
            pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
        draws = int(np.clip(4e7 / (n * m), 24, 600))
        ways = {"without": ["sigma"], "with": ["sigma", "mu"]}
        found = {way: [] for way in ways}
        for _ in range(options.repeats):
            for way, names in ways.items():
                found[way].append(run(model, names, draws, options.cores, options.step))
        (cpu, wall), (cpu_with, wall_with) = (np.min(found[way], axis=0) for way in ways)
        print(
            f"{n} rows, {m} trees, {options.cores} cores: CPU {cpu:.2f} and {cpu_with:.2f} ms a "
            f"draw, ratio {cpu_with / cpu:.3f}; wall {wall:.2f} and {wall_with:.2f} ms, ratio "
            f"{wall_with / wall:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
