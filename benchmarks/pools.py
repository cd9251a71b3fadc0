"""How often does the check of a pool of chains err, on chains whose law is known?

    python -m benchmarks.pools                # all cases, a minute
    python -m benchmarks.pools --repeats 20   # a first look

Rows are `ROWS` columns that are mixtures of `DIRECTIONS` independent chains: as many directions in
which f can move. A direction is an autoregression of order one with unit variance, plus what a case
adds; sigma is another. Reported is the share of repeats with each verdict of `judge_pool`.
"""

import argparse
from collections import Counter
from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter

from pymc_trees.posterior.pool import judge_pool

DIRECTIONS, ROWS = 20, 50
VERDICTS = ("agree", "pool", "few", "apart", "warm-up", "short")


class Case(NamedTuple):
    """Chains of a known law."""

    chains: int = 4
    draws: int = 250
    correlation: float = 0.9
    """Of neighbouring draws."""
    between: float = 0.0
    """Share of the variance of f that is between chains, for ever."""
    start: float = 0.0
    """Sds by which chains are off at the first draw: in sigma all to one side, in f each to its
    own."""
    forgets: float = 0.5
    """Draws, as a share of all, in which that falls by e."""
    modes: float = 0.0
    """Sds of sigma between two modes, in one of which each chain stays; f differs by 2."""


STATIONARY = {
    f"{chains} chains of {draws}, correlation {phi}, between {between}": Case(
        chains, draws, phi, between
    )
    for chains in (2, 4, 8)
    for draws, phi in ((50, 0.0), (50, 0.9), (250, 0.9), (1000, 0.9), (1000, 0.98))
    for between in (0.0, 0.3, 0.7, 0.9)
}
ON_THEIR_WAY = {
    f"{chains} chains of {draws}, {start} sds off at first, falls by e in {forgets}": Case(
        chains, draws, 0.9, 0.3, start, forgets
    )
    for chains in (4, 8)
    for draws in (250, 1000)
    for start in (1.0, 2.0, 4.0)
    for forgets in (0.1, 0.3, 1.0)
}
IN_MODES = {
    f"{chains} chains of 250 in two modes, sigma {modes} sds apart": Case(chains, modes=modes)
    for chains in (4, 8)
    for modes in (0.01, 1.0, 3.0)
}
CASES = {
    "stationary": STATIONARY,
    "on their way": ON_THEIR_WAY,
    "in modes": IN_MODES,
}


def autoregression(rng, shape, correlation):
    """Stationary, with unit variance, along the axis 1."""
    noise = rng.standard_normal(shape)
    noise[:, 1:] *= np.sqrt(1 - correlation**2)
    return lfilter([1.0], [1.0, -correlation], noise, axis=1)


def draw(rng, case: Case):
    """(chains, draws, rows) values of f, and (chains, draws) of sigma."""
    inside = autoregression(rng, (case.chains, case.draws, DIRECTIONS), case.correlation)
    sigma = autoregression(rng, (case.chains, case.draws, 1), case.correlation)[..., 0]
    apart = rng.standard_normal((case.chains, 1, DIRECTIONS))
    f = np.sqrt(1 - case.between) * inside + np.sqrt(case.between) * apart
    left = case.start * np.exp(-np.arange(case.draws) / (case.forgets * case.draws))
    f += left[:, None] * rng.standard_normal((case.chains, 1, DIRECTIONS))
    sigma += left
    if case.modes:
        mode = rng.integers(2, size=(case.chains, 1))
        f += 2 * mode[..., None]
        sigma += case.modes * mode
    weights = rng.standard_normal((DIRECTIONS, ROWS)) / np.sqrt(DIRECTIONS)
    return f @ weights, sigma


def rates(case: Case, repeats: int, seed: int = 1) -> dict[str, float]:
    """Share of repeats with each verdict."""
    rng, counts = np.random.default_rng(seed), Counter()
    for _ in range(repeats):
        f, sigma = draw(rng, case)
        counts[judge_pool(f, {"sigma": sigma}).verdict] += 1
    return {verdict: counts[verdict] / repeats for verdict in VERDICTS}


def report(repeats: int):
    for title, cases in CASES.items():
        print(f"\n| {title} | {' | '.join(VERDICTS)} |")
        print("|---" * (1 + len(VERDICTS)) + "|")
        for name, case in cases.items():
            shares = rates(case, repeats)
            print(f"| {name} | {' | '.join(f'{shares[v]:.2f}'.lstrip('0') for v in VERDICTS)} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=200)
    report(parser.parse_args().repeats)
