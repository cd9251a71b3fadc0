"""Is there a better fixed choice of what a step does, at any number of rows?

    python -m benchmarks.scale.shares --rows 30 1000 --out benchmarks/results/shares.jsonl
    python -m benchmarks.scale.shares --report

Friedman's first function, ten columns, noise of sd 1 that is known, 50 trees; cuts on a grid from
100,000 rows on. Effective samples of f per CPU second of the default step, called on its own
points, and of the same step with shares fixed by hand. Chains of all choices take turns on one
core, a slice at a time, each until it has used its CPU seconds, so that what else the machine does
costs all of them alike; the first quarter, in which the step tunes, is dropped. ESS is the middle
one over 100 training rows, its standard error the jackknife over chains. The table has the ratio
of a choice to the default of the same run, over all runs, and the number of chains of each. With
another ``--noise`` rows tell more or less. Where chains are far from agreeing in such a time there
is no ESS: how near a chain's mean of f comes to the truth by then, in root mean squared error at
those rows, says which choice finds the trees sooner.
"""

import argparse
from pathlib import Path
from time import process_time

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
LARGE = 30_000
"""Rows from which on chains of minutes do not agree."""
SLICE = 0.25
"""CPU seconds of a turn."""
COMPILING = 1.0
"""Seconds of a first chain, which is dropped."""


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
    "weights alone learnt": {"batch": BATCH},
    "redraws alone learnt": {"moves": MOVES},
    "no small steps": fixed(weights(0.0)),
    ".85 small steps": fixed(weights(0.85)),
    "few changes and swaps": fixed(FEW_CHANGES),
    "a tenth redrawn": fixed(batch=(0.1, 0.1)),
    "1 temperature": fixed(temperatures=1),
    "3 temperatures": fixed(temperatures=3),
}


class Chain:
    """A chain, run in slices of CPU time."""

    def __init__(self, step, start, seconds, seed):
        self.step, self.point = step, start
        self.tuned, self.whole = turns.WARM_UP * seconds, seconds
        self.rows = turns.rows_of(step.forests[0].layout.n_rows)
        self.used, self.draws = 0.0, []
        step.setup_chain(np.random.default_rng(seed), 1, 0)

    def go_on(self):
        """A slice of the draws of f after the warm-up; whether it was the last."""
        begin, step = process_time(), self.step
        until = min(begin + SLICE, begin + self.whole - self.used)
        while (now := process_time()) < until:
            is_kept = self.used + now - begin > self.tuned
            if is_kept and step.tune:
                step.stop_tuning()
            self.point, _ = step.step(self.point)
            if is_kept:
                self.draws.append(step.states[0].forest.fit[self.rows, 0])
        self.used += process_time() - begin
        return self.used >= self.whole


def take_turns(chains):
    """Run all to their ends, a slice of each at a time: a busy hour costs all of them the same."""
    waiting = list(chains)
    while waiting:
        waiting = [one for one in waiting if not one.go_on()]


def measure(n, names, seconds, seeds, noise=1.0):
    """A line of results for each of the choices."""
    case = data.friedman("friedman", n, TREES)
    truth = data.friedman_function(case.X)
    y = truth + noise * (case.y - truth)
    chains = {}
    with pm.Model() as model:
        mu = pmt.BART("mu", case.X, y, m=TREES, n_cuts=100 if n >= GRID_FROM else None)
        pm.Normal("y", mu, noise, observed=y, shape=mu.shape)
        start = model.initial_point()
        for name in names:
            make = CHOICES[name]
            take_turns([Chain(pmt.Hybrid([mu], **make), start, COMPILING, 0)])
            steps = [pmt.Hybrid([mu], **make) for _ in seeds]
            chains[name] = [Chain(s, start, seconds, k) for s, k in zip(steps, seeds, strict=True)]
    take_turns(chain for of_choice in zip(*chains.values(), strict=True) for chain in of_choice)
    for name, found in chains.items():
        f = turns.together([chain.draws for chain in found])
        used = seconds * (1 - turns.WARM_UP)
        rmse = np.sqrt(np.mean((f.mean(axis=1) - truth[turns.rows_of(n)]) ** 2, axis=1))
        each = [middle_ess(np.delete(f, k, axis=0)) / (len(f) - 1) for k in range(len(f))]
        yield {
            "n": n,
            "noise": noise,
            "choice": name,
            "ess": middle_ess(f) / len(f) / used,
            "error": float(np.sqrt((len(f) - 1) * np.var(each))) / used,
            "least": float(of_each(ess, f).min()) / len(f) / used,
            "rhat": float(of_each(rhat, f).mean()),
            "rmse": float(rmse.mean()),
            "rmse_error": float(rmse.std(ddof=1) / np.sqrt(len(f))),
            "draws": f.shape[1],
            "seconds": seconds,
            "chains": len(seeds),
            "seed": seeds[0],
        }


def middle_ess(f):
    return float(np.median(of_each(ess, f)))


def report(results):
    """Print the stored results: choices over the default where chains agree, and RMSE."""
    small = results[results.n < LARGE]
    tables = sorted(set(zip(small.n, small.noise, strict=True)))
    heads = [f"{n:,} rows" + ("" if noise == 1 else f", noise {noise:g}") for n, noise in tables]
    print(f"| fixed by hand | {' | '.join(heads)} |")
    print("|---" * (1 + len(heads)) + "|")
    of = {table: small[(small.n == table[0]) & (small.noise == table[1])] for table in tables}
    own = [lines[lines.choice == "default"].iloc[-1] for lines in of.values()]
    told = [f"{one.ess:.3g} ± {one.error:.2g} a second ({one.rhat:.3f})" for one in own]
    print(f"| default | {' | '.join(told)} |")
    ratios = {table: over_default(lines) for table, lines in of.items()}
    for choice in [name for name in CHOICES if any(name in found for found in ratios.values())]:
        cells = [show_ratio(found.get(choice)) for found in ratios.values()]
        print(f"| {choice} | {' | '.join(cells)} |")
    if "rmse" in results and (results.n >= LARGE).any():
        print("| rows | fixed by hand | RMSE of a chain's mean of f | draws | R-hat |")
        print("|---" * 5 + "|")
        latest = results[results.n >= LARGE].drop_duplicates(["n", "choice"], keep="last")
        for one in latest.sort_values("n", kind="stable").itertuples():
            print(
                f"| {one.n:,} | {one.choice} | {one.rmse:.3f} ± {one.rmse_error:.3f} "
                f"| {one.draws} | {one.rhat:.2f} |"
            )


def over_default(lines):
    """Ratio of ESS to the default's in the same run, its standard error, and chains, by choice.

    Runs are pooled by the inverse variance of the log of the ratio.
    """
    logs, found = {}, {}
    for _, run in lines.groupby("seed"):
        own = run[run.choice == "default"].iloc[-1]
        for one in run[run.choice != "default"].itertuples():
            variance = (one.error / one.ess) ** 2 + (own.error / own.ess) ** 2
            log = np.log(one.ess / own.ess)
            logs.setdefault(one.choice, []).append((log, variance, one.chains))
    for choice, of_runs in logs.items():
        log, variance, chains = (np.array(column) for column in zip(*of_runs, strict=True))
        ratio = np.exp(np.average(log, weights=1 / variance))
        found[choice] = ratio, ratio / np.sqrt((1 / variance).sum()), int(chains.sum())
    return found


def show_ratio(found):
    return "" if found is None else f"{found[0]:.2f} ± {found[1]:.2f} of {found[2]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[30, 300, 3_000, 30_000])
    parser.add_argument("--choices", nargs="+", default=list(CHOICES), choices=list(CHOICES))
    parser.add_argument("--noise", type=float, default=1.0, help="its standard deviation")
    parser.add_argument("--seconds", type=float, default=10.0, help="CPU seconds of a chain")
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0, help="of the first chain")
    parser.add_argument("--out", type=Path, help="file of results to add lines to")
    parser.add_argument("--report", action="store_true", help="print the table of the results")
    args = parser.parse_args()
    if args.report:
        report(pd.read_json(args.out or RESULTS, lines=True))
        return
    seeds = range(args.seed, args.seed + args.chains)
    for n in args.rows:
        for line in measure(n, args.choices, args.seconds, seeds, args.noise):
            show_line(line, args.out)


if __name__ == "__main__":
    main()
