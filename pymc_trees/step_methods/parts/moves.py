"""Common code of sweeps of moves: weights by name, accepted shares, and how often trees change."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pymc_trees.core.interrupts import run_apart


def read_weights(given, known: list[str]) -> np.ndarray:
    """Weights of all moves, 0 for those not given, or an error."""
    if not isinstance(given, Mapping):
        raise TypeError(f"moves={given!r}: must be a dict from move to weight.")
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise ValueError(f"moves: {unknown} are not moves; choose from {known}.")
    try:
        weights = np.array([float(given.get(name, 0.0)) for name in known])
    except (TypeError, ValueError) as error:
        raise ValueError(f"moves={dict(given)}: weights must be numbers ({error}).") from error
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"moves={dict(given)}: weights must be finite numbers of at least 0.")
    return weights


VISITS, CHANGES = "visits", "changes"
"""What parts report besides their statistics: visits of a tree, and accepted changes of it.

New leaf values are none, nor small steps of a cut or bandwidth (`SMALL`): both go on where a chain
never comes to another tree.
"""
SMALL = "perturb", "bandwidth"
"""Moves that keep a tree's shape and columns."""
CHANGES_PER_VISIT = "changes_per_visit"
"""Name of the statistic of a step: the ratio of the two."""


def changes_per_visit(found: list[dict]) -> float:
    """Of the reports of parts, from which visits and changes are removed; NaN without visits."""
    visits = sum(one.pop(VISITS, 0) for one in found)
    changes = sum(one.pop(CHANGES, 0) for one in found)
    return changes / visits if visits else np.nan


def n_changes(names: Sequence[str], accepted: np.ndarray) -> int:
    """Accepted moves, by name, that are no small steps."""
    return sum(int(a) for name, a in zip(names, accepted, strict=True) if name not in SMALL)


class Accepted(NamedTuple):
    """What a run accepted."""

    shares: np.ndarray
    """Accepted shares, NaN without proposals."""
    numbers: np.ndarray
    """Accepted numbers."""


def accepted_shares(
    run: Callable[[np.ndarray], bool], cease: np.ndarray, long: bool, n_counted: int
) -> Accepted | None:
    """What a run accepted; None if it ran out of room.

    Parameters
    ----------
    run : callable
        Function of the (2, n_counted) numbers of proposed and accepted moves.
    cease : (1,) bool
        Flag that ends a run from outside.
    long : bool
        Whether interrupts are handled during it.
    """
    counts = np.zeros((2, n_counted), dtype=np.int64)

    def counted():
        return run(counts)

    if not (run_apart(counted, cease) if long else counted()):
        return None
    proposed, accepted = counts
    share = np.full(n_counted, np.nan)
    np.divide(accepted, proposed, out=share, where=proposed > 0)
    return Accepted(share, accepted)
