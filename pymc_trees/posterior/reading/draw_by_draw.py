"""Work on one draw after another, or on several at once in threads, with a progress bar."""

from collections.abc import Callable

import joblib
import numpy as np
from rich.progress import track

from pymc_trees.arguments import check_number

LARGEST = 2_000_000_000
"""Bytes of an answer."""


def thinned(n_chains: int, n_draws: int, wanted: int | None) -> np.ndarray:
    """Draws of each chain to take, evenly spaced: so many over all chains, or all."""
    each = n_draws
    if wanted is not None:
        each = min(-(-check_number("draws", wanted, 1) // n_chains), n_draws)
    return np.linspace(0, n_draws - 1, each).round().astype(int)


def check_answer(what: str, numbers: int, remedy: str) -> None:
    """Raise an error for an answer of so many numbers that is too large for most machines."""
    if 8 * numbers > LARGEST:
        raise ValueError(
            f"{what}: the result would have {numbers:,} numbers, {8 * numbers / 1e9:.1f} GB; "
            f"reduce it by {remedy}."
        )


def for_each_draw(
    work: Callable[[int, int], None],
    shape: tuple[int, int],
    title: str,
    cores: int | None,
    progressbar: bool,
    most: int | None = None,
) -> None:
    """Call a function of chain and draw for each, in as many threads as there are cores.

    At most ``most``, where memory bounds them. An interrupt waits for the draws that have begun.
    """
    jobs = joblib.cpu_count() if cores is None else check_number("cores", cores, 1)
    jobs = jobs if most is None else max(1, min(jobs, most))
    run = joblib.Parallel(jobs, require="sharedmem", return_as="generator_unordered")
    done = run(joblib.delayed(work)(chain, draw) for chain, draw in np.ndindex(shape))
    total, quiet = int(np.prod(shape)), not progressbar
    for _ in track(done, title, total, disable=quiet, transient=True):
        pass
