"""What the package adds to PyMC's own costs: import, second start, steps beside their sweeps.

    python -m benchmarks.overhead

Each start is a process of its own. Run it twice: the first run fills the caches of compiled code.
"""

import argparse
import subprocess
import sys
import time

import numpy as np

START = """
import sys, time
begin = time.perf_counter()
import numpy as np, pymc as pm
imported = time.perf_counter()
import pymc_trees as pmt
ours = time.perf_counter()
rng = np.random.default_rng(0)
X = rng.random((1000, 10))
y = 10 * X[:, 3] + rng.normal(size=1000)
first = []
with pm.Model():
    if sys.argv[1] == "bart":
        mu = pmt.BART("mu", X, y, m=200)
    else:
        mu = pm.math.dot(X, pm.Normal("b", 0, 1, shape=10))
    sigma = pm.HalfNormal("sigma", 1)
    pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
    pm.sample(5, tune=5, chains=1, cores=1, progressbar=False, quiet=True, random_seed=1,
              callback=lambda trace, draw: first or first.append(time.perf_counter()),
              compute_convergence_checks=False)
print(imported - begin, ours - imported, first[0] - begin)
"""


def start(model):
    """Seconds to import PyMC, to import this package after it, and to the first draw."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", START, model],
        capture_output=True,
        text=True,
        check=True,
    )
    return [float(v) for v in done.stdout.split()[-3:]]


def nuts_share(n, p, m, steps):
    """Milliseconds of a CGM step and of NUTS on sigma after it, means over ``steps``."""
    import pymc as pm

    import pymc_trees as pmt

    rng = np.random.default_rng(0)
    X = rng.random((n, p))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 10 * X[:, 3] + rng.normal(size=n)
    spent = np.zeros((2, 2 * steps))
    with pm.Model() as model:
        mu = pmt.BART("mu", X, y, m=m)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
        methods = [pmt.CGM(), pm.NUTS([sigma])]
        point = model.initial_point()
    for k, method in enumerate(methods):
        method.setup_chain(np.random.default_rng(k), steps, steps)
    for i in range(2 * steps):
        for k, method in enumerate(methods):
            if i == steps:
                method.stop_tuning()
            begin = time.process_time()
            point, _ = method.step(point)
            spent[k, i] = time.process_time() - begin
    return 1e3 * spent[:, steps:].mean(axis=1)


def beside_sweeps(n, p, m, draws):
    """Milliseconds of CPU of a default draw, and of its part that no number of sweeps changes.

    That part is a line's value at 0 sweeps. It holds all of PyMC's own loop and recording, the step
    for sigma, and in the step for the forest whatever is not a sweep.
    """
    import pymc as pm

    import pymc_trees as pmt

    rng = np.random.default_rng(0)
    X = rng.random((n, p))
    y = 10 * X[:, 3] + 5 * X[:, 4] + rng.normal(size=n)
    settings = {"tune": 100, "chains": 1, "cores": 1, "random_seed": 1, "progressbar": False}

    def seconds(sweeps, length):
        with pm.Model():
            mu = pmt.BART("mu", X, y, m=m)
            sigma = pm.HalfNormal("sigma", 1)
            pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
            step = [pmt.Hybrid(local_sweeps=sweeps, batch=(0.02, 0.02)), pmt.NoiseScale()]
            begin = time.process_time()
            quiet = {"quiet": True, "compute_convergence_checks": False}
            pm.sample(length, step=step, **settings, **quiet)
        return time.process_time() - begin

    numbers = np.array([2, 20])
    seconds(2, 10)  # compiles
    times = [1e3 * (seconds(k, draws) - seconds(k, draws // 5)) / (0.8 * draws) for k in numbers]
    slope = (times[1] - times[0]) / (numbers[1] - numbers[0])
    return times[1], times[0] - numbers[0] * slope


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args()
    for model in ("bart", "plain"):
        times = np.median([start(model) for _ in range(options.repeats)], axis=0)
        pymc, ours, first = times
        print(
            f"{model}: import pymc {pymc:.2f} s, pymc_trees after it {ours:.3f} s, "
            f"start of the process to the first draw {first:.2f} s"
        )
    for n, p, m in ((1_000, 10, 200), (10_000, 100, 200)):
        sweep, nuts = nuts_share(n, p, m, options.steps)
        print(
            f"n={n} p={p} m={m}: sweep {sweep:.2f} ms, NUTS on sigma {nuts:.2f} ms, "
            f"{100 * nuts / sweep:.1f}% of the sweep"
        )
    for n in (30, 100, 300):
        draw, rest = beside_sweeps(n, 10, 50, 10 * options.steps)
        print(
            f"n={n} p=10 m=50: a draw {draw:.2f} ms, {rest:.2f} of it beside its 20 sweeps, "
            f"{100 * rest / draw:.0f}%"
        )


if __name__ == "__main__":
    main()
