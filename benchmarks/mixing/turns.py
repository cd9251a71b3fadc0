"""Chains that take turns on one core, each for its CPU seconds: options and tables."""

import argparse
import sys
from time import process_time

import numpy as np

from benchmarks.peers import data, table
from benchmarks.peers.metrics import ess, of_each, rhat

N_ROWS = 100
"""Training rows at which f is judged."""
WARM_UP = 0.25
"""Share of a chain's seconds that is dropped."""


def rows_of(n):
    """Evenly spaced rows of n."""
    return np.linspace(0, n - 1, N_ROWS).round().astype(int)


def blocks(seconds):
    """Blocks of a chain while its CPU seconds last: whether each is after the warm-up."""
    begin = process_time()
    while (used := process_time() - begin) < seconds:
        yield used > WARM_UP * seconds


def together(draws):
    """Draws of chains as one array, as many of each as the shortest has: (chains, draws, ...)."""
    shortest = min(len(of_chain) for of_chain in draws)
    return np.array([of_chain[:shortest] for of_chain in draws])


def agreement(f, seconds):
    """Cells of a table: ESS per second, and R-hat, of f, (chains, draws, rows)."""
    ess_f, rhat_f = of_each(ess, f) / seconds, of_each(rhat, f)
    return [
        f"{np.median(ess_f):.2f} ({ess_f.min():.2f})",
        f"{rhat_f.mean():.3f} ({rhat_f.max():.3f})",
    ]


def parser_of(program):
    """Options of every table."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}")
    add = parser.add_argument
    add("--rows", type=int, default=1_000)
    add("--trees", type=int, default=50)
    add("--seconds", type=float, default=20.0, help="CPU seconds of a chain")
    add("--chains", type=int, default=4)
    add("--seed", type=int, default=0, help="of the first chain")
    return parser


def parse(program, what, names, arguments):
    """Options; those of ``what`` choose among names, all unless given."""
    parser = parser_of(program)
    parser.add_argument(f"--{what}", nargs="+", default=list(names), choices=list(names))
    return parser.parse_args(arguments)


def show(header, measure, options, names):
    """Print ``measure(case, name, seconds, seeds)`` of each name as it comes, then the table."""
    case = data.friedman("friedman", options.rows, options.trees)
    seeds = range(options.seed, options.seed + options.chains)
    rows = []
    for name in names:
        rows.append(measure(case, name, options.seconds, seeds))
        print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    print(table.markdown(header, rows))
