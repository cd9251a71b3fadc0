"""What do moves along ridges bring? Intercept, cut points and group means beside a forest.

    python -m benchmarks.mixing.ridges
    python -m benchmarks.mixing.ridges --seconds 5 --models counts

The steps of `pm.sample()`, with the moves and without, run for the same time, turn by turn.
Reported are steps, milliseconds a step, the integrated autocorrelation time (IACT) in steps of the
level that a ridge moves, and of the sum of that level and the mean of f, and effective draws of the
level a second. Times are CPU times of one process: the machine may be shared.
"""

import argparse
import time

import numpy as np
import pymc as pm

import pymc_trees as pmt
from benchmarks.peers import table
from benchmarks.peers.metrics import ess

ORDERED = pm.distributions.transforms.ordered


def data(rows: int, seed: int):
    rng = np.random.default_rng(seed)
    X = rng.random((rows, 5))
    f = np.sin(6 * X[:, 0]) + X[:, 1]
    return rng, X, f


def forest(X, trees):
    return pmt.BART("f", X, m=trees, leaf=pmt.NormalLeaf(0.0, 1.5 / np.sqrt(trees)))


def counts(rows, trees, seed):
    rng, X, f = data(rows, seed)
    b = pm.Normal("b", 0, 2)
    pm.Poisson("y", pm.math.exp(forest(X, trees) + b), observed=rng.poisson(np.exp(f - 1)))
    return "b", lambda point: float(point["b"]), 1.0


def classes(rows, trees, seed):
    rng, X, f = data(rows, seed)
    cuts = pm.Normal("cuts", 0, 3, shape=3, transform=ORDERED, initval=[-1.0, 0.0, 1.0])
    y = np.digitize(f + rng.logistic(size=rows), [-0.5, 0.5, 1.5])
    pm.OrderedLogistic("y", eta=forest(X, trees), cutpoints=cuts, observed=y)
    return "first cut point", lambda point: float(point["cuts_ordered__"][0]), -1.0


def groups(rows, trees, seed):
    rng, X, f = data(rows, seed)
    group = rng.integers(0, 10, rows)
    a = pm.Normal("a", pm.Normal("mu", 0, 2), pm.HalfNormal("tau"), shape=10)
    y = rng.poisson(np.exp(f - 1 + 0.5 * rng.normal(size=10)[group]))
    pm.Poisson("y", pm.math.exp(forest(X, trees) + a[group]), observed=y)
    return "mean of a", lambda point: float(np.mean(point["a"])), 1.0


MODELS = {"counts": counts, "classes": classes, "groups": groups}


class Chain:
    """Steps of a model by the steps that `pm.sample()` assigns."""

    def __init__(self, declare, arguments, moves: bool):
        with pm.Model() as model:
            self.name, self.level, self.sign = declare(arguments.rows, arguments.trees, 1)
            rest = [v for v in model.value_vars if not v.name.endswith("_forest")]
            self.trees, self.nuts = pmt.Hybrid(), pm.NUTS(rest)
        if not moves:
            self.trees.ridges = {}
        self.steps = [self.trees, self.nuts]
        self.point, rng = model.initial_point(), np.random.default_rng(3)
        for step in self.steps:
            step.setup_chain(rng.spawn(1)[0], arguments.tune, 1)
        for _ in range(arguments.tune):
            self.move()
        for step in self.steps:
            step.stop_tuning()
        self.seconds, self.found = 0.0, []

    def move(self):
        for step in self.steps:
            self.point, _ = step.step(self.point)

    def run(self, seconds: float) -> None:
        stop = time.process_time() + seconds
        start = time.process_time()
        while time.process_time() < stop:
            self.move()
            level = self.level(self.point)
            mean = float(self.trees.states[0].forest.fit.mean())
            self.found.append((level, mean + self.sign * level))
        self.seconds += time.process_time() - start


def iact(draws) -> float:
    return len(draws) / float(ess(np.asarray(draws)[None]))


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixing.ridges")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--trees", type=int, default=50)
    parser.add_argument("--tune", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each chain, in five turns")
    arguments = parser.parse_args()
    rows = []
    for model in arguments.models:
        chains = {moves: Chain(MODELS[model], arguments, moves) for moves in (False, True)}
        for _ in range(5):
            for chain in chains.values():
                chain.run(arguments.seconds / 5)
        for moves, chain in chains.items():
            level, total = np.array(chain.found).T
            n, of_level = len(level), iact(level)
            numbers = [n, 1e3 * chain.seconds / n, of_level, iact(total)]
            numbers.append(n / of_level / chain.seconds)
            names = [model, chain.name, "yes" if moves else "no"]
            rows.append([*names, *(table.number("", v) for v in numbers)])
    header = ["model", "level", "moves", "steps", "ms a step", "IACT", "IACT of the sum", "ESS/s"]
    print(table.markdown(header, rows))


if __name__ == "__main__":
    main()
