"""Milliseconds per sweep on one thread, and the ratio to dbarts.

    python -m benchmarks.peers.sweep_speed

Friedman's function, ten columns. Each package warms up, then its sweeps are timed without
compilation, prediction or stored trees where the package allows; the packages take turns
several times and the median is reported. A step of PyMC is timed as it is: the trees, the
other parameters and the bookkeeping. ``pymc_trees_sweep`` is the sweep of the step method alone.
One step of pymc-bart is a tenth of a sweep.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from . import data, launch, table
from .protocol import Problem

PACKAGES = ("dbarts", "stochtree", "bartz", "pymc_bart", "pymc_trees", "pymc_trees_sweep")


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers.sweep_speed")
    add = parser.add_argument
    add("--packages", nargs="+", default=list(PACKAGES), metavar="PACKAGE[:VARIANT]")
    add("--rows", nargs="+", type=int, default=[1_000, 10_000])
    add("--trees", type=int, default=200)
    add("--warmup", type=int, default=200)
    add("--sweeps", type=int, default=200)
    add("--repeats", type=int, default=3)
    add("--timeout", type=float, default=600)
    add("--python", action="append", default=[], metavar="PACKAGE=EXECUTABLE")
    add("--out", type=Path)
    return parser.parse_args(arguments)


def measure(name, case, options, pythons, seed):
    """Milliseconds per sweep of all trees, and seconds of compilation."""
    package, variant = launch.split_name(name)
    problem = Problem(
        X=case.X,
        y=case.y,
        X_test=case.X_test[:0],
        m=case.m,
        n_warmup=options.warmup,
        n_draws=options.sweeps,
        thin=1,
        chains=1,
        seed=seed,
        variant=variant,
    )
    python = pythons.get(package, sys.executable)
    result = launch.run(package, problem, python=python, timeout=options.timeout)
    sweeps = problem.n_draws * result.sweeps_per_step
    return 1e3 * result.seconds_sampling / sweeps, result.seconds_compile


def in_turns(case, options, pythons):
    """Per package the measurements of all repeats, or the reason there are none."""
    found, failed = {name: [] for name in options.packages}, {}
    for repeat in range(options.repeats):
        for name in options.packages:
            if name in failed:
                continue
            try:
                found[name].append(measure(name, case, options, pythons, seed=1 + repeat))
                text = f"{found[name][-1][0]:.3g} ms"
                print(f"{case.name}, turn {repeat + 1}: {name} {text}", file=sys.stderr)
            except launch.RunnerFailed as error:
                failed[name] = str(error)
    return found, failed


def row(name, n, found, base):
    ms, compiling = np.array(found[name]).T
    middle = np.median(ms)
    ratio = f"{middle / base:.2f}" if base else "-"
    spread = f"{ms.min():.3g} to {ms.max():.3g}"
    return [f"{n}", name, f"{middle:.3g}", spread, ratio, f"{np.median(compiling):.1f}"]


def main(arguments=None):
    options = parse(arguments)
    pythons = dict(item.split("=", 1) for item in options.python)
    rows, notes = [], {}
    for n in options.rows:
        case = data.friedman(f"friedman-{n}", n, options.trees)
        found, failed = in_turns(case, options, pythons)
        notes |= failed
        base = np.median([ms for ms, _ in found["dbarts"]]) if found.get("dbarts") else None
        rows += [row(name, n, found, base) for name in options.packages if found[name]]
    header = ["rows", "package", "ms per sweep", "range", "ratio to dbarts", "compile s"]
    text = f"{table.machine()}; sweeps of {options.trees} trees, ten columns.\n\n"
    text += table.markdown(header, rows) + "\n"
    text += "".join(f"\n- {name}: {reason}" for name, reason in notes.items())
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
