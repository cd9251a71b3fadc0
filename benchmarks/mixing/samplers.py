"""Samplers by name, each run as the peers are: a process of its own, one core, one thread.

A name is `default` (the step `pm.sample` assigns), a step method of `pymc_trees`, or a package of
`benchmarks.peers.launch`, with a variant after a colon: `dbarts`, `pymc_bart:all`.
"""

import sys
from dataclasses import dataclass
from functools import partial

from benchmarks.peers import budget, launch
from benchmarks.peers.protocol import Problem


@dataclass(frozen=True)
class Effort:
    """How long to sample: so many seconds a chain, or fixed numbers of iterations."""

    chains: int
    keep: int
    seconds: float | None = None
    tune: int = 1_000
    draws: int = 1_000
    timeout: float | None = None
    pythons: tuple[str, ...] = ()
    """``PACKAGE=EXECUTABLE`` of packages that live in another environment."""


def parts_of(name):
    """Package and variant of a name."""
    if name == "default":
        return "pymc_trees", ""
    if name.partition(":")[0] in launch.PACKAGES:
        return launch.split_name(name)
    return "pymc_trees", name


def check(names):
    """Raise ``ValueError`` before anything runs where a name is no sampler."""
    import pymc_trees

    for name in names:
        package, variant = parts_of(name)
        if package == "pymc_trees" and variant and not hasattr(pymc_trees, variant):
            packages = ", ".join(launch.PACKAGES)
            raise ValueError(f"{name!r} is no step method of pymc_trees and none of {packages}")


def fit(name, case, effort, seed):
    """The problem that was run and its result; f is at ``case.X_test``."""
    package, variant = parts_of(name)
    python = dict(item.split("=", 1) for item in effort.pythons).get(package, sys.executable)
    run = partial(launch.run, package, python=python, timeout=effort.timeout)
    problem = Problem(case.X, case.y, case.X_test, case.m, 0, 0, 1, effort.chains, seed, variant)
    if effort.seconds:
        problem = budget.for_seconds(run, problem, effort.seconds, effort.keep)
    else:
        problem = budget.fixed(problem, effort.tune, effort.draws, effort.keep)
    return problem, run(problem)
