"""One tree, two ways to part the same rows: ``python -m benchmarks.mixing.two_modes``.

WU and CGM are the synthetic data of the DCC-Tree paper (`benchmarks.papers.dcc_tree.data`), and in
`quadrants` each quarter of the square has a mean of its own. On each, two kinds of tree have the
leaves of the truth, and a chain should go from one to the other:

- WU: column 0 or column 2 at the root;
- CGM: below the root, on the left, the cut of column 0 near 3 or that near 7 comes first;
- quadrants: column 0 or column 1 at the root.

Chains of 10,000 steps, from a stump, sigma drawn after each step; the first 1,000 are dropped.
Steps of `CGM` and `RestructureCGM` are of one proposal each, by kernels without PyMC; the others
are step methods, whose times have PyMC's overhead in them. The prior is that of `DecisionTree`. A
run of DCC-Tree stands for a chain: it has as many draws, which are independent, of trees with soft
splits, whose root is at the heaviest column; its local chains make as many proposals after their
warm-ups, which are in the times. ESS and R-hat are ArviZ's of the indicator of the first kind over
all chains; none is given where no chain changes. Where R-hat is far above 1 the ESS says no more
than how many chains there are.
"""

import argparse
from time import process_time

import numpy as np
import pandas as pd

from benchmarks.mixing.two_modes_dcc import NAME as DCC
from benchmarks.mixing.two_modes_dcc import dcc_run
from benchmarks.mixing.two_modes_steps import STEPS as STEP_METHODS
from benchmarks.mixing.two_modes_steps import step_chain
from benchmarks.papers.dcc_tree.data import cgm, wu
from benchmarks.peers.metrics import ess, rhat
from benchmarks.tables.lines import run_table
from pymc_trees.core.columns.design import make_design
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import make_trees
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.moves.catalogue import standard_moves
from pymc_trees.core.moves.problem import Problem, make_workspace
from pymc_trees.core.priors.cgm import make_prior
from pymc_trees.core.samplers.backfitting import sweep
from pymc_trees.step_methods.cgm import MIX

STEPS, WARM_UP, MAX_NODES = 10_000, 1_000, 199
FOUR = np.array([0.25, 0.25, 0.4, 0.1])
# grow, prune, change, swap, perturb, rotate, restructure
SAMPLERS = {
    "CGM": [*FOUR, 0.0, 0.0, 0.0],
    "CGM and a fifth rotate": [*(0.8 * FOUR), 0.0, 0.2, 0.0],
    "RestructureCGM": [MIX.get(name, 0.0) for name in ("grow", "prune", "change", "swap")]
    + [0.0, 0.0, MIX["restructure"]],
}


def quadrants(rng, n=400):
    """Rows, function, noise."""
    X = rng.random((n, 3))
    f = 1.0 + 2.0 * (X[:, 0] > 0.5) + 4.0 * (X[:, 1] > 0.5) + (X[:, :2] > 0.5).all(axis=1)
    return X, f, rng.normal(0, 0.5, n)


# Data, and the numbers in `seen` that stand for the two kinds of tree.
DATA = {"WU": (wu, (0, 2)), "CGM": (cgm, (4, 5)), "quadrants": (quadrants, (0, 1))}
ROOT, FIRST_CUT = 0, 1
LOOK = {"WU": ROOT, "CGM": FIRST_CUT, "quadrants": ROOT}


@njit(cache=True)
def look(trees, where):
    """Column of the root, or 4 and 5: below the root's left a cut of column 0 under 5, or not."""
    root = trees.roots[0]
    if where == 0 or trees.column[root] != 1:
        return trees.column[root] if where == 0 else -1
    left = trees.left[root]
    if trees.column[left] != 0:
        return -1
    return 4 if trees.cut[left] < 5.0 else 5


@njit(cache=True, nogil=True)
def run(rng, problem, moves, work, n, where, counts, seen):
    """Steps, sigma after each of them; what kind of tree is met."""
    leaf = problem.leaf
    for s in range(seen.size):
        if not sweep(rng, problem, moves, work, counts):
            raise ValueError("full")
        total = 0.0
        for i in range(n):
            total += leaf.r[i] ** 2
        leaf.w[0] = rng.standard_gamma(0.5 * n) / (0.5 * total)
        seen[s] = look(problem.trees, where)


def chain(name, sampler, seed, steps=STEPS):
    """Kinds of tree, counts of moves, CPU seconds."""
    X, f, noise = DATA[name][0](np.random.default_rng(20240))
    y = f + noise
    y -= y.mean()
    if sampler == DCC:
        seen, time = dcc_run(X, y, seed, steps)
        return seen, np.zeros((2, 7)), time
    if sampler in STEP_METHODS:
        seen, time = step_chain(X, y, sampler, seed, steps, min(WARM_UP, steps), look, LOOK[name])
        return seen, np.zeros((2, 7)), time
    n, p = X.shape
    design = make_design(X)
    leaf = make_normal(0.0, np.ptp(y) / 4, y.copy(), 1 / y.var(), MAX_NODES)
    prior = make_prior(0.95, 1.0, np.full(p, 1 / p))
    problem = Problem(make_trees(1, MAX_NODES, 1, n), design, prior, leaf)
    work, moves = make_workspace(MAX_NODES, 2, design), standard_moves(np.array(SAMPLERS[sampler]))
    counts, seen = np.zeros((2, 7), dtype=np.int64), np.empty(steps, dtype=np.int64)
    begin = process_time()
    run(np.random.default_rng(seed), problem, moves, work, n, LOOK[name], counts, seen)
    return seen, counts, process_time() - begin


def one(name: str, sampler: str, chains: int) -> dict:
    chain(name, sampler, 0, 10)  # compiles
    kinds, counts, seconds = zip(*(chain(name, sampler, k) for k in range(chains)), strict=True)
    kept = np.array(kinds)[:, WARM_UP:]
    first, second = ((kept == kind) for kind in DATA[name][1])
    both = first.any(axis=1) & second.any(axis=1)
    switches = [
        int((np.diff(k[(k == a) | (k == b)]) != 0).sum())
        for k, (a, b) in ((row, DATA[name][1]) for row in kept)
    ]
    indicator, moved = first.astype(float), sum(switches) > 0
    seconds = sum(seconds)
    kept_seconds = seconds * (1 - WARM_UP / STEPS)
    accepted = np.sum(counts, axis=0)
    return {
        "either": float((first.any(axis=1) | second.any(axis=1)).mean()),
        "both": float(both.mean()),
        "switches": float(np.mean(switches)),
        "first": float(first.mean()),
        "second": float(second.mean()),
        "ess_per_second": float(ess(indicator)) / kept_seconds if moved else None,
        "rhat": float(rhat(indicator)) if moved else None,
        "microseconds": 1e6 * seconds / (chains * STEPS),
        "restructured": float(accepted[1, 6] / max(accepted[0, 6], 1)),
    }


KEYS = ("data", "sampler", "chains")
METHODS = [*SAMPLERS, *STEP_METHODS, DCC]


def is_made(name, sampler, chains):
    """DCC-Tree has kinds of tree only where these are told by the root."""
    return sampler != DCC or LOOK[name] == ROOT


def shown(value, digits):
    return "" if pd.isna(value) else f"{value:.{digits}f}"


def report(results: pd.DataFrame) -> None:
    """A line for each data set and sampler."""
    print(
        "| data | sampler | chains in either kind | in both | switches a chain | shares of steps |"
        " R-hat | ESS per s | us a step |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for row in results.itertuples():
        print(
            f"| {row.data} | {row.sampler} | {row.either:.0%} | {row.both:.0%} | "
            f"{row.switches:.1f} | {row.first:.2f}, {row.second:.2f} | {shown(row.rhat, 2)} | "
            f"{shown(row.ess_per_second, 2 if row.ess_per_second < 1 else 0)} | "
            f"{row.microseconds:.1f} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=DATA)
    parser.add_argument("--chains", type=int, default=40)

    def values(given):
        return given.data, given.methods, [given.chains]

    run_table(parser, "two_modes.jsonl", METHODS, KEYS, values, one, report, is_made)


if __name__ == "__main__":
    main()
