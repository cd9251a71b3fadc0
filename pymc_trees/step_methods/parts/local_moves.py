"""Sweeps of Metropolis-Hastings moves, as a part of a step."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from pymc_trees.arguments import check_number
from pymc_trees.core.forest.trees import reserve_row_sets
from pymc_trees.core.forest.undo import make_saved_tree
from pymc_trees.core.interrupts import run_interruptible
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.moves.catalogue import MOVES
from pymc_trees.core.moves.contract import (
    WeightedMoves,
    make_weighted_moves,
    move_name,
    registered_moves,
)
from pymc_trees.core.samplers.backfitting import sweeps
from pymc_trees.core.samplers.joint_sweep import joint_sweeps
from pymc_trees.step_methods.parts.contract import Part
from pymc_trees.step_methods.parts.screening import Screened, Screening, is_screened

# --------------------------------------------------------------------------------------------------
# Common code of sweeps of moves: weights by name, accepted shares, and how often trees change.


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
    run: Callable[[np.ndarray], bool], stop_flag: np.ndarray, long: bool, n_counted: int
) -> Accepted | None:
    """What a run accepted; None if it ran out of room.

    Parameters
    ----------
    run : callable
        Function of the (2, n_counted) numbers of proposed and accepted moves.
    stop_flag : (1,) bool
        Flag that ends a run from outside.
    long : bool
        Whether interrupts are handled during it.
    """
    counts = np.zeros((2, n_counted), dtype=np.int64)

    def counted():
        return run(counts)

    if not (run_interruptible(counted, stop_flag) if long else counted()):
        return None
    proposed, accepted = counts
    share = np.full(n_counted, np.nan)
    np.divide(accepted, proposed, out=share, where=proposed > 0)
    return Accepted(share, accepted)


# --------------------------------------------------------------------------------------------------


DEFAULT_MOVES = {"grow": 0.25, "prune": 0.25, "change": 0.4, "swap": 0.1}

ROWS = 500_000
"""Rows times trees that a step visits unless its sweeps are given, within these bounds."""
FEWEST, MOST = 5, 20
"""Default range of sweeps per step; the minimum if leaf values do not integrate out."""
LARGE = 10_000_000
"""Limit of rows times trees per step on tables where `FEWEST` sweeps would exceed it."""

LONG = 200_000
"""Rows times trees times moves beyond which interrupts are handled during the call."""
LONG_CONJUGATE = 2_000_000
"""The same if leaf values integrate out."""


class LocalMoves(Screened, Part):
    """Sweeps: for each tree some Metropolis-Hastings moves, then new leaf values.

    Parameters
    ----------
    moves : dict or None
        Weights by name, as for `CGM`.
    n_sweeps : int or None
        Sweeps of a step; None for a number that makes a step worth its overhead (`enough_sweeps`).
    moves_per_visit : int
        Moves of a tree before its leaf values are drawn.
    places : callable, optional
        Of a forest: among how many forests sweeps that are not given are shared out, itself
        included.
    """

    def __init__(self, moves=None, n_sweeps=1, moves_per_visit=1, places=None):
        super().__init__()
        moves = check_moves(DEFAULT_MOVES if moves is None else moves)
        per_visit = check_number("moves_per_visit", moves_per_visit, 1)
        self.moves = moves._replace(per_visit=per_visit)
        self.n_sweeps, self.places = n_sweeps, places
        self.counted = tuple(f"accept_{move_name(move)}" for move in self.moves.moves)
        self.statistics = self.counted

    def prepare(self, forest):
        """Name the statistic of screened sweeps if there are any."""
        if is_screened(forest) and "accept_delayed" not in self.counted:
            self.counted += ("accept_delayed",)
            self.statistics += ("accept_delayed",)

    def moves_of(self, forest) -> WeightedMoves:
        """Moves of a forest's trees, with their weights."""
        return self.moves

    def compilation(self, rng, forest, problem):
        """Compile the sweeps that a forest needs first, with their moves."""

        def compile_sweeps():
            if is_screened(forest):
                screening, moves = Screening(forest, problem.leaf), self.moves_of(forest)
                run = screening.sweeps(rng, forest, problem, moves, forest.work)
            else:
                run = self._unscreened(rng, forest, problem, forest.work)
            forest.call.compile(*run.args, 1, np.zeros((2, 1), dtype=np.int64))

        return [compile_sweeps]

    def update(self, rng, forest, problem, tuning, n_sweeps=None):
        """Sweep, so often if given; the accepted share of each move, or None: too small a pool."""
        n_sweeps = n_sweeps or self.sweeps_of(forest)
        if not is_screened(forest):
            return self.sweep(rng, forest, problem, forest.work, n_sweeps)
        screening = self.take_screening(forest, problem.leaf)
        if tuning:
            screening.follow(problem.leaf.offset)
        found = None
        if screening.fails:
            found = self.sweep(rng, forest, problem, forest.work, n_sweeps)
            if found is None:
                return None
        if tuning or not screening.fails:
            moves = self.moves_of(forest)
            run = screening.sweeps(rng, forest, problem, moves, forest.work)
            screened = self._run(run, forest, forest.work, 1 if found else n_sweeps, 1)
            if screened is None:
                return None
            if tuning:
                screening.learn(screened["accept_delayed"])
            found = found or screened
            found["accept_delayed"] = screened["accept_delayed"]
        self.screenings[forest.name] = screening
        return found

    def sweeps_of(self, forest) -> int:
        """Sweeps of a step."""
        places = 1 if self.places is None else self.places(forest)
        return self.n_sweeps or enough_sweeps(forest, places)

    def share_of_sweeps(self, forest) -> float:
        """`fewest_sweeps` as a share of `FEWEST`; 1 where the number of sweeps is given."""
        return 1.0 if self.n_sweeps is not None else fewest_sweeps(forest) / FEWEST

    def sweep(self, rng, forest, problem, work, n_sweeps):
        """Sweep the trees of a problem that has the layout of a forest, without a screen."""
        run = self._unscreened(rng, forest, problem, work)
        return self._run(run, forest, work, n_sweeps, 0)

    def _unscreened(self, rng, forest, problem, work):
        """Sweeps without a screen, as a function of their number and counts."""
        moves = self.moves_of(forest)
        if forest.target.is_joint:
            n, max_nodes = forest.layout.n_rows, forest.layout.max_nodes
            flat = make_normal(0.0, 1.0, np.zeros(n), 0.0, max_nodes)
            free = problem._replace(leaf=flat)
            without_data, moves = forest.by_address(free, work, moves)
            problem = without_data._replace(leaf=problem.leaf)
            kept = make_saved_tree(problem.trees, reserve_row_sets(*work.sets.shape))
            given = problem, without_data, moves, work, kept
            return partial(forest.call, joint_sweeps, rng, *given)
        problem, moves = forest.by_address(problem, work, moves)
        return partial(forest.call, sweeps, rng, problem, moves, work)

    def _run(self, run, forest, work, n_sweeps, n_further):
        """Accepted shares of moves and other counts, visits and changes, or None: full pool."""
        most = LONG if forest.target.needs_surrogate else LONG_CONJUGATE
        long = _size(forest) * n_sweeps * self.moves.per_visit > most
        names = [move_name(move) for move in self.moves.moves]
        n_moves = len(names)
        accepted = accepted_shares(
            partial(run, n_sweeps), work.stop_flag, long, n_moves + n_further
        )
        if accepted is None:
            return None
        shares = [*accepted.shares, *[np.nan] * (len(self.counted) - n_moves - n_further)]
        return dict(zip(self.counted, shares, strict=True)) | {
            VISITS: forest.layout.m * n_sweeps,
            CHANGES: n_changes(names, accepted.numbers[:n_moves]),
        }


def enough_sweeps(forest, places: int) -> int:
    """Number of sweeps that take most of the time of a PyMC step (benchmarks)."""
    if forest.target.needs_surrogate:
        return FEWEST
    return -(-min(max(ROWS // _size(forest), fewest_sweeps(forest)), MOST) // places)


def fewest_sweeps(forest) -> int:
    """`FEWEST`, or fewer on a large table if leaf values integrate out."""
    if forest.target.needs_surrogate:
        return FEWEST
    return min(FEWEST, max(LARGE // _size(forest), 1))


def _size(forest) -> int:
    """Rows times trees."""
    return forest.layout.n_rows * forest.layout.m


def check_moves(given) -> WeightedMoves:
    """Moves with normalised weights: `MOVES`, and others that have a positive one."""
    own = {move_name(move): move for move in MOVES}
    known = own | {name: kind() for name, kind in registered_moves().items() if name not in own}
    weights = read_weights(given, list(known))
    kept = (weights > 0) | [name in own for name in known]  # code is compiled for each move kept
    moves = [move for move, keep in zip(known.values(), kept, strict=True) if keep]
    weights = weights[kept]
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not np.isfinite(total):  # the sum may overflow
        weights = weights / weights.max()
        total = weights.sum()
    weights = weights / (total or 1.0)
    if weights[0] == 0 or weights[1] == 0:
        raise ValueError(
            f"moves={dict(given)}: grow and prune need positive weights, or the sampler could not "
            "reach every tree."
        )
    return make_weighted_moves(tuple(moves), weights)
