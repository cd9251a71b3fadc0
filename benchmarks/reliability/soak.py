"""Does memory grow while a process fits and predicts for hours?

    python -m benchmarks.reliability.soak --minutes 60
    python -m benchmarks.reliability.soak --minutes 60 --only plain bart tree_smc

Rounds of small fits and predictions on one core; the memory of the process is read after each.
PyTensor and numba never give compiled code back, nor what reading it from a cache takes: each
`pm.sample` adds to a process, without a tree too. ``plain`` says how much, a PyMC model without
one; ``bart`` and ``tree_smc`` are to be held against it. ``sweeps`` and ``mondrian`` compile in
the first round alone, and have no excuse: samplers and a prediction made once and used for all
rounds, and forests that are fitted, extended, copied and asked. Linux only: memory is what the
kernel says in /proc.
"""

import argparse
import gc
import logging
import os
import pickle
import warnings
from functools import cache
from time import perf_counter

import numpy as np
import pymc as pm
from scipy import stats

import pymc_trees as pmt

QUIET = dict(chains=1, cores=1, progressbar=False, quiet=True, compute_convergence_checks=False)
N, P = 200, 3
BATCHES = 10


def resident_mb():
    """Memory of this process that is in RAM, in MB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def rows(n=N):
    """The same in all rounds: PyTensor compiles anew for other data."""
    rng = np.random.default_rng(0)
    X = rng.random((n, P))
    return X, 3 * np.sin(6 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)


def plain(rng):
    """A regression by NUTS, without a tree, and predictions on new rows."""
    X, y = rows()
    with pm.Model():
        data = pm.Data("X", X)
        mu = pm.math.dot(data, pm.Normal("b", 0, 1, shape=P))
        pm.Normal("y", mu, pm.HalfNormal("sigma", 1), observed=y, shape=mu.shape)
        idata = pm.sample(50, tune=50, random_seed=int(rng.integers(2**31)), **QUIET)
        pm.set_data({"X": rng.random((50, P))})
        pm.sample_posterior_predictive(idata, predictions=True, progressbar=False)


def bart(rng):
    """BART by `Hybrid`, and predictions on new rows."""
    X, y = rows()
    with pm.Model():
        data = pm.Data("X", X)
        mu = pmt.BART("mu", data, y, m=10)
        pm.Normal("y", mu, pm.HalfNormal("sigma", 1), observed=y, shape=mu.shape)
        idata = pm.sample(50, tune=50, random_seed=int(rng.integers(2**31)), **QUIET)
        pm.set_data({"X": rng.random((50, P))})
        pm.sample_posterior_predictive(idata, predictions=True, progressbar=False)


@cache
def made():
    """A model, its steps, and the compiled function of X at a point."""
    X, y = rows()
    with pm.Model() as model:
        data = pm.Data("X", X)
        mu = pmt.BART("mu", data, y, m=10)
        pm.Normal("y", mu, pm.HalfNormal("sigma", 1), observed=y, shape=mu.shape)
        steps = [pmt.Hybrid(), pm.NUTS([model["sigma"]])]
        predict = model.compile_fn(
            model.replace_rvs_by_values([mu])[0], point_fn=True, on_unused_input="ignore"
        )
    return model, steps, predict


def sweeps(rng):
    """Chains of 100 iterations and predictions on new rows, nothing compiled anew."""
    model, steps, predict = made()
    point = model.initial_point()
    X = model["X"].get_value()
    for step in steps:
        step.setup_chain(np.random.default_rng(rng.integers(2**31)), 50, 50)
    for k in range(100):
        for step in steps:
            if k == 50:
                step.stop_tuning()
            point, _ = step.step(point)
    with model:
        pm.set_data({"X": rng.random((50, P))})
        predict({"mu_forest": point["mu_forest"]})
        pm.set_data({"X": X})


def mondrian(rng):
    """Both Mondrian forests: batch, stream, predictions, and a copy through pickle."""
    X, y = rows()
    seed = int(rng.integers(2**31))
    for forest, labels in (
        (pmt.MondrianForestRegressor(20, random_state=seed), y),
        (pmt.MondrianForestClassifier(20, random_state=seed), (y > 1).astype(int)),
    ):
        forest.fit(X[:100], labels[:100])
        for k in range(100, N):
            forest.partial_fit(X[k : k + 1], labels[k : k + 1])
        again = pickle.loads(pickle.dumps(forest))
        again.partial_fit(X, labels)
        again.predict(rng.random((50, P)))
        again.sample_y(rng.random((50, P)), 5, random_state=seed)


def tree_smc(rng):
    """One tree by sequential Monte Carlo, and predictions on new rows."""
    X, y = rows(100)
    with pm.Model():
        data = pm.Data("X", X)
        p = pmt.DecisionTree("p", data, leaf=pmt.DirichletLeaf(alpha=2.0, n_classes=2))
        pm.Categorical("y", p=p, observed=(y > 1).astype(int), shape=p.shape[:1])
        idata = pmt.sample_tree_smc(
            100, islands=1, cores=1, random_seed=int(rng.integers(2**31)), progressbar=False
        )
        pm.set_data({"X": rng.random((50, P))})
        pm.sample_posterior_predictive(idata, predictions=True, progressbar=False)


KINDS = {f.__name__: f for f in (sweeps, mondrian, bart, tree_smc, plain)}


def slope(hours, mb):
    """MB per hour over the second half, and its standard error from means of batches.

    Memory moves in steps, so that rounds beside each other are not independent.
    """
    late = slice(len(mb) // 2, None)
    batches = [
        [np.mean(part) for part in np.array_split(np.asarray(of)[late], BATCHES)]
        for of in (hours, mb)
    ]
    line = stats.linregress(*batches)
    return line.slope, line.stderr


def main():
    """Run rounds, print the table and the slope."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--only", nargs="+", choices=KINDS, default=["sweeps", "mondrian"])
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.getLogger("pymc").setLevel(logging.ERROR)
    rng = np.random.default_rng(options.seed)
    hours, mb = [], []
    grown = dict.fromkeys(options.only, 0.0)
    spent = dict.fromkeys(options.only, 0.0)
    print(f"{resident_mb():.1f} MB before the first round, which compiles", flush=True)
    for name in options.only:
        KINDS[name](rng)
    print("round  minutes  resident MB", flush=True)
    begin, next_line = perf_counter(), 0.0
    while perf_counter() - begin < 60 * options.minutes or len(mb) < 2 * BATCHES:
        for name in options.only:
            before, start = resident_mb(), perf_counter()
            KINDS[name](rng)
            gc.collect()
            grown[name] += resident_mb() - before
            spent[name] += perf_counter() - start
        hours.append((perf_counter() - begin) / 3600)
        mb.append(resident_mb())
        if 60 * hours[-1] >= next_line:
            print(f"{len(mb):5d}  {60 * hours[-1]:7.1f}  {mb[-1]:11.1f}", flush=True)
            next_line = 60 * hours[-1] + options.minutes / 30
    print(f"{len(mb):5d}  {60 * hours[-1]:7.1f}  {mb[-1]:11.1f}")
    rounds = len(mb)
    for name in options.only:
        print(
            f"{name}: {spent[name] / rounds:.2f} s and {1024 * grown[name] / rounds:+.1f} kB "
            "a round"
        )
    each, error = slope(hours, mb)
    print(f"second half: {each:+.2f} MB an hour, standard error {error:.2f}")
    late = len(mb) - len(mb) // 2
    per_round = each * (hours[-1] - hours[-late]) / max(late - 1, 1)
    print(f"that is {1024 * per_round:+.1f} kB a round over {late} rounds")


if __name__ == "__main__":
    main()
