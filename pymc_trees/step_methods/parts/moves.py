"""Common code of sweeps of moves: weights by name, and accepted shares."""

from collections.abc import Callable, Mapping

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


def accepted_shares(
    run: Callable[[np.ndarray], bool], cease: np.ndarray, long: bool, n_counted: int
) -> np.ndarray | None:
    """Accepted shares of a run, NaN without proposals; None if it ran out of room.

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
    return share
