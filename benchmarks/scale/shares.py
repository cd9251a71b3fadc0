"""Is there a better fixed choice of what a step does, at any number of rows?

    python -m benchmarks.scale.shares --rows 30 1000 --out benchmarks/results/shares.jsonl
    python -m benchmarks.scale.shares --report

Friedman's first function, ten columns, noise of sd 1 that is known, 50 trees; cuts on a grid from
100,000 rows on. Effective samples of f per CPU second of the default step, called on its own
points, and of the same step with shares fixed by hand. Chains take turns on one core, each until it
has used its CPU seconds; the first quarter, in which the step tunes, is dropped. ESS is the middle
one over 100 training rows. The table has ESS a second, and R-hat.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import pymc as pm

import pymc_trees as pmt
from benchmarks.mixing import turns
from benchmarks.peers import data
from benchmarks.peers.metrics import ess, of_each, rhat
from benchmarks.tables.lines import show_line
from pymc_trees.step_methods.hybrid import BATCH, MOVES

RESULTS = Path(__file__).parents[1] / "results" / "shares.jsonl"
TREES, GRID_FROM = 50, 100_000


def weights(perturb):
    """Local moves of which such a share are small steps of one rule; others as in the default."""
    rest = (1 - perturb) / (1 - MOVES["perturb"])
    return {name: rest * weight for name, weight in MOVES.items()} | {"perturb": perturb}


FEW_CHANGES = {"grow": 0.1, "prune": 0.1, "change": 0.025, "swap": 0.015, "perturb": 0.76}


def fixed(moves=MOVES, batch=BATCH, **others):
    """Nothing adapts."""
    return {"moves": moves, "batch": batch, **others}


CHOICES = {
    "default": {},
    "as the default starts": fixed(),
    "no small steps": fixed(weights(0.0)),
    ".85 small steps": fixed(weights(0.85)),
    "few changes and swaps": fixed(FEW_CHANGES),
    "a tenth redrawn": fixed(batch=(0.1, 0.1)),
    "1 temperature": fixed(temperatures=1),
}


def chain(step, start, seconds, seed):
    """Draws of f after the warm-up."""
    rows = turns.rows_of(step.forests[0].layout.n_rows)
    step.setup_chain(np.random.default_rng(seed), 1, 0)
    point, draws = start, []
    for is_kept in turns.blocks(seconds):
        if is_kept and step.tune:
            step.stop_tuning()
        point, _ = step.step(point)
        if is_kept:
            draws.append(step.forests[0].arrays.fit[rows, 0])
    return np.array(draws)


def measure(n, name, seconds, seeds):
    """A line of results."""
    case = data.friedman("friedman", n, TREES)
    with pm.Model() as model:
        mu = pmt.BART("mu", case.X, case.y, m=TREES, n_cuts=100 if n >= GRID_FROM else None)
        pm.Normal("y", mu, 1.0, observed=case.y, shape=mu.shape)
        step = pmt.Hybrid([mu], **CHOICES[name])
    start = model.initial_point()
    chain(step, start, 0.2, 0)  # compiles
    f = turns.together([chain(step, start, seconds, seed) for seed in seeds])
    used = len(seeds) * seconds * (1 - turns.WARM_UP)
    return {
        "n": n,
        "choice": name,
        "ess": float(np.median(of_each(ess, f))) / used,
        "least": float(of_each(ess, f).min()) / used,
        "rhat": float(of_each(rhat, f).mean()),
        "seconds": seconds,
        "chains": len(seeds),
    }


def report(results):
    """Print the stored results as a table of the docs: ESS per second, and R-hat, by choice."""
    latest = results.drop_duplicates(["n", "choice"], keep="last")
    sizes = sorted(latest.n.unique())
    print(f"| fixed by hand | {' | '.join(f'{n:,} rows' for n in sizes)} |")
    print("|---" * (1 + len(sizes)) + "|")
    for choice in CHOICES:
        of = latest[latest.choice == choice].set_index("n")
        told = [f"{of.ess[n]:.1f} ({of.rhat[n]:.3f})" if n in of.index else "" for n in sizes]
        print(f"| {choice} | {' | '.join(told)} |")
    best = latest[latest.choice != "default"].groupby("n").ess.max()
    own = latest[latest.choice == "default"].set_index("n").ess
    over = [f"{best[n] / own[n]:.2f}" for n in sizes]
    print(f"| best of these over the default | {' | '.join(over)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[30, 300, 3_000, 30_000])
    parser.add_argument("--choices", nargs="+", default=list(CHOICES), choices=list(CHOICES))
    parser.add_argument("--seconds", type=float, default=10.0, help="CPU seconds of a chain")
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0, help="of the first chain")
    parser.add_argument("--out", type=Path, help="file of results to add lines to")
    parser.add_argument("--report", action="store_true", help="print the table of the results")
    args = parser.parse_args()
    if args.report:
        report(pd.read_json(args.out or RESULTS, lines=True))
        return
    for n in args.rows:
        for name in args.choices:
            seeds = range(args.seed, args.seed + args.chains)
            show_line(measure(n, name, args.seconds, seeds), args.out)


if __name__ == "__main__":
    main()
