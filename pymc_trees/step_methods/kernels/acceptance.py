"""Accepted moves: how kernels count them, and how the weights of moves follow them in tuning.

A kind of move gets more than its usual share of a step if more of its moves are accepted, relative
to their cost, than on average, and less if fewer are. Costs are counted, not timed, so runs are
reproducible; usual shares are those that worked best over many tables (benchmarks), and changes are
bounded, since the kinds complement each other. After tuning nothing changes.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from pymc_trees.core.interrupts import run_interruptible
from pymc_trees.step_methods.kernels.contract import CHANGES, VISITS

# ------------------------------------------------------------------------ Weights of moves by name


def read_weights(moves, known: list[str]) -> np.ndarray:
    """Weights of all moves, 0 for those not given, or an error."""
    if not isinstance(moves, Mapping):
        raise TypeError(f"moves={moves!r}: must be a dict from move to weight.")
    unknown = sorted(set(moves) - set(known))
    if unknown:
        raise ValueError(f"moves: {unknown} are not moves; choose from {known}.")
    try:
        weights = np.array([float(moves.get(name, 0.0)) for name in known])
    except (TypeError, ValueError) as error:
        raise ValueError(f"moves={dict(moves)}: weights must be numbers ({error}).") from error
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"moves={dict(moves)}: weights must be finite numbers of at least 0.")
    return weights


# -------------------------------------------------------------------------- What a sweep accepted

CHANGES_PER_VISIT = "changes_per_visit"
"""Name of the statistic of a step: accepted changes of trees for each visit of one."""
SMALL = "perturb", "bandwidth"
"""Moves that keep the shape and the columns of a tree.

They do not count as changes, nor do new leaf values: both are accepted even where a chain never
reaches another tree.
"""


def changes_per_visit(reports: list[dict]) -> float:
    """Of the reports of kernels, from which visits and changes are removed; NaN without visits."""
    visits = sum(one.pop(VISITS, 0) for one in reports)
    changes = sum(one.pop(CHANGES, 0) for one in reports)
    return changes / visits if visits else np.nan


def n_changes(names: Sequence[str], accepted: np.ndarray) -> int:
    """Number of accepted moves, given by name, other than small ones."""
    return sum(int(a) for name, a in zip(names, accepted, strict=True) if name not in SMALL)


class Accepted(NamedTuple):
    """What a run accepted of each kind of proposal."""

    shares: np.ndarray
    """Accepted shares, NaN without proposals."""
    numbers: np.ndarray
    """Accepted numbers."""


def accepted_shares(
    run: Callable[[np.ndarray], bool], stop_flag: np.ndarray, long: bool, n_kinds: int
) -> Accepted | None:
    """What a run accepted; None if it ran out of room.

    Parameters
    ----------
    run : callable
        Function of the (2, n_kinds) numbers of proposed and accepted moves, which it increments.
    stop_flag : (1,) bool
        Flag that ends a run from outside.
    long : bool
        Whether interrupts are handled while it runs.
    """
    counts = np.zeros((2, n_kinds), dtype=np.int64)

    def counted():
        return run(counts)

    if not (run_interruptible(counted, stop_flag) if long else counted()):
        return None
    proposed, accepted = counts
    share = np.full(n_kinds, np.nan)
    np.divide(accepted, proposed, out=share, where=proposed > 0)
    return Accepted(share, accepted)


# ----------------------------------------------------------------------------- Adaptation in tuning

AVERAGED = 200
"""Steps of tuning over which acceptance is averaged."""
FIRST = 20
"""Steps of tuning before shares are adapted."""
BOUNDS = 0.25, 2.0
"""Bounds of a kind's share, relative to its usual share."""
COSTS = {"grow": 1.4, "prune": 1.4, "change": 3.0, "swap": 2.9, "perturb": 2.0}
"""Microseconds of a move on 1,000 rows (`benchmarks.mixing.cost_of_moves`)."""
OTHER_COST = 3.0
REVERSE = "grow", "prune"
"""Moves that reverse each other, and share one weight."""
ENOUGH = 0.05
"""Acceptance of redrawn trees from which on they get their full share."""


class AcceptanceRates(NamedTuple):
    """Accepted shares of some kinds of moves, as means over the last steps of tuning."""

    mean: np.ndarray
    n_seen: np.ndarray
    """Steps in which each kind was proposed."""

    @classmethod
    def start(cls, n_kinds: int) -> "AcceptanceRates":
        """Of a new chain."""
        return cls(np.zeros(n_kinds), np.zeros(n_kinds))

    def updated(self, shares) -> "AcceptanceRates":
        """With the accepted shares of a step; NaN for moves that were not proposed."""
        shares = np.asarray(shares)
        seen = ~np.isnan(shares)
        mean, n_seen = self.mean.copy(), self.n_seen + seen
        mean[seen] += (shares[seen] - mean[seen]) * (1 / np.minimum(n_seen[seen], AVERAGED))
        return AcceptanceRates(mean, n_seen)


def adapted_weights(rates: AcceptanceRates, names: list[str], usual: np.ndarray) -> np.ndarray:
    """Weights of named moves, from their usual ones."""
    if rates.n_seen.max() < FIRST:
        return usual
    costs, pair = _costs_and_pair(tuple(names))
    per_cost = rates.mean / costs
    per_cost[pair] = per_cost[pair].mean()
    mean = usual @ per_cost
    if mean <= 0:
        return usual
    weights = usual * np.minimum(np.maximum(per_cost / mean, BOUNDS[0]), BOUNDS[1])
    return weights / weights.sum()


@cache
def _costs_and_pair(names: tuple[str, ...]) -> tuple[np.ndarray, list[int]]:
    """Costs of named moves, and where those are that reverse each other."""
    costs = np.array([COSTS.get(name, OTHER_COST) for name in names])
    return costs, [names.index(name) for name in REVERSE]


def adapted_probability(rates: AcceptanceRates) -> float:
    """Probability of redrawing trees: lower where redrawn trees are rarely accepted."""
    if rates.n_seen[0] < FIRST:
        return 1.0
    return float(np.clip(rates.mean[0] / ENOUGH, BOUNDS[0], 1.0))
