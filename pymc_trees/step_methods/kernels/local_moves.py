"""Sweeps of Metropolis-Hastings moves, as a kernel of a step."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from pymc_trees.arguments import check_number
from pymc_trees.core.forest.trees import make_saved_tree, reserve_row_sets
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
from pymc_trees.step_methods.kernels.acceptance import (
    AcceptanceRates,
    accepted_shares,
    adapted_weights,
    n_changes,
    read_weights,
)
from pymc_trees.step_methods.kernels.contract import CHANGES, VISITS, Kernel
from pymc_trees.step_methods.kernels.delayed_acceptance import DelayedAcceptance, is_screened
from pymc_trees.targets.graph import UnsupportedModelError

DEFAULT_MOVES = {"grow": 0.25, "prune": 0.25, "change": 0.4, "swap": 0.1}

ROWS = 500_000
"""Rows times trees that a step visits unless its sweeps are given, within these bounds."""
FEWEST, MOST = 5, 20
"""Default range of sweeps per step; the minimum if leaf values do not integrate out."""

LONG = 200_000
"""Rows times trees times moves beyond which interrupts are handled during the call."""
LONG_CONJUGATE = 2_000_000
"""The same if leaf values integrate out."""


class MovesState(NamedTuple):
    """What sweeps of moves adapt."""

    rates: AcceptanceRates | None = None
    """Of each move, where their weights are adapted."""
    delayed: DelayedAcceptance | None = None
    """Where the likelihood is a product over rows."""


class LocalMoves(Kernel):
    """Sweeps: for each tree some Metropolis-Hastings moves, then new leaf values.

    Parameters
    ----------
    moves : dict or None
        Weights by name, as for `CGM`.
    n_sweeps : int or None
        Sweeps per step; None for a number that makes a step worth its overhead (`enough_sweeps`).
    moves_per_visit : int
        Moves of a tree before its leaf values are drawn.
    adaptive : bool
        Whether the weights are adapted in tuning.
    """

    def __init__(self, moves=None, n_sweeps=1, moves_per_visit=1, adaptive=False):
        weighted = check_moves(DEFAULT_MOVES if moves is None else moves)
        per_visit = check_number("moves_per_visit", moves_per_visit, 1)
        self.moves = weighted._replace(per_visit=per_visit)
        self.names = [move_name(move) for move in weighted.moves]
        self.n_sweeps, self.adaptive = n_sweeps, adaptive

    def check(self, forest):
        """Refuse moves that take rows and reference rows (`core.columns.reference`) as one."""
        others = [name for name in self.names if name not in (*DEFAULT_MOVES, "perturb")]
        if forest.has_random_columns and others:
            raise UnsupportedModelError(
                f"moves={others}: {forest.name} has random columns (with_columns), whose rows "
                f"move. Use {[*DEFAULT_MOVES, 'perturb']} only."
            )

    def statistics(self, forest):
        """Accepted shares, and the weights if they are adapted."""
        names = [f"accept_{name}" for name in self.names]
        names += ["accept_delayed"] if is_screened(forest) else []
        names += [f"weight_{name}" for name in self.names] if self.adaptive else []
        return dict.fromkeys(names, ())

    def moves_of(self, state: MovesState | None) -> WeightedMoves:
        """Moves with their weights, adapted or not."""
        if state is None or state.rates is None:
            return self.moves
        weights = adapted_weights(state.rates, self.names, self.moves.weights)
        return self.moves._replace(weights=weights)

    def compilation(self, rng, data):
        """Compile the sweeps that a forest needs first, with their moves."""

        def compile_sweeps():
            if is_screened(data.forest):
                delayed = DelayedAcceptance.start(data.forest, data.problem.leaf, data.level)
                run = delayed.sweeps(rng, data, self.moves)
            else:
                run = self._sweeps(rng, data, self.moves)
            data.forest.call.compile(*run.args, 1, np.zeros((2, 1), dtype=np.int64))

        return [compile_sweeps]

    def update(self, rng, state, data):
        """Sweep the trees; adapt."""
        n_sweeps = data.n_sweeps or self.n_sweeps_of(data.forest, data.n_temperatures)
        rates, delayed = state or MovesState()
        moves = self.moves_of(state)
        if is_screened(data.forest):
            delayed, stats = self._delayed(rng, delayed, data, moves, n_sweeps)
        else:
            stats = self._run(self._sweeps(rng, data, moves), data, n_sweeps)
        if self.adaptive:
            stats |= zip((f"weight_{name}" for name in self.names), moves.weights, strict=True)
            if data.tuning:
                rates = rates or AcceptanceRates.start(len(self.names))
                rates = rates.updated([stats[f"accept_{name}"] for name in self.names])
        return MovesState(rates, delayed), stats

    def n_sweeps_of(self, forest, n_temperatures: int = 1) -> int:
        """Sweeps per step, of each of some temperatures."""
        return self.n_sweeps or enough_sweeps(forest, n_temperatures)

    def _sweeps(self, rng, data, moves) -> Callable:
        """Sweeps that accept each move by itself, as a function of their number and counts."""
        forest, problem, work = data.forest, data.problem, data.work
        if forest.target.is_joint:
            n, max_nodes = forest.layout.n_rows, forest.layout.max_nodes
            flat = make_normal(0.0, 1.0, np.zeros(n), 0.0, max_nodes)
            free = problem._replace(leaf=flat)
            without_data, moves = forest.by_address(free, work, moves)
            problem = without_data._replace(leaf=problem.leaf)
            undo = make_saved_tree(problem.trees, reserve_row_sets(*work.sets.shape))
            arguments = problem, without_data, moves, work, undo
            return partial(forest.call, joint_sweeps, rng, *arguments)
        problem, moves = forest.by_address(problem, work, moves)
        return partial(forest.call, sweeps, rng, problem, moves, work)

    def _delayed(self, rng, delayed, data, moves, n_sweeps):
        """Sweeps with delayed acceptance, unless it fails: its new state, and statistics.

        Where it fails while tuning, one such sweep a step tells whether it still does.
        """
        delayed = delayed or DelayedAcceptance.start(data.forest, data.problem.leaf, data.level)
        if data.tuning:
            delayed = delayed.averaged(data.problem.leaf.offset - data.level)
        stats = {}
        fails = delayed.fails and not data.forest.target.has_coefficients  # proposed so alone
        if fails:
            stats = self._run(self._sweeps(rng, data, moves), data, n_sweeps)
            stats["accept_delayed"] = np.nan
        if data.tuning or not fails:
            run = delayed.sweeps(rng, data, moves)
            screened = self._run(run, data, 1 if stats else n_sweeps, ("accept_delayed",))
            if data.tuning:
                delayed = delayed.with_share(screened["accept_delayed"])
            stats = (stats or screened) | {"accept_delayed": screened["accept_delayed"]}
        return delayed, stats

    def _run(self, run, data, n_sweeps, further=()) -> dict:
        """Accepted shares of moves and of what else is counted, visits and changes."""
        forest = data.forest
        most = LONG if forest.target.needs_surrogate else LONG_CONJUGATE
        long = _size(forest) * n_sweeps * self.moves.per_visit > most
        names = (*(f"accept_{name}" for name in self.names), *further)
        accepted = accepted_shares(partial(run, n_sweeps), data.work.stop_flag, long, len(names))
        if accepted is None:
            raise forest.too_large()
        return dict(zip(names, accepted.shares, strict=True)) | {
            VISITS: forest.layout.m * n_sweeps,
            CHANGES: n_changes(self.names, accepted.numbers[: len(self.names)]),
        }


def enough_sweeps(forest, n_temperatures: int) -> int:
    """Number of sweeps that take most of the time of a PyMC step (benchmarks).

    Many trees on few rows soon forget the last draw, given the noise, and further sweeps gain
    nothing until that is drawn: they are at most five times the ratio of rows to trees.
    """
    if forest.target.needs_surrogate:
        return FEWEST
    most = min(MOST, FEWEST * forest.layout.n_rows // forest.layout.m)
    n_sweeps = max(min(ROWS // _size(forest), most), FEWEST)
    return -(-n_sweeps // n_temperatures)


def _size(forest) -> int:
    """Rows times trees."""
    return forest.layout.n_rows * forest.layout.m


def check_moves(moves) -> WeightedMoves:
    """Moves with normalised weights: `MOVES`, and others that have a positive one."""
    own = {move_name(move): move for move in MOVES}
    known = own | {name: kind() for name, kind in registered_moves().items() if name not in own}
    weights = read_weights(moves, list(known))
    used = (weights > 0) | [name in own for name in known]  # each of these is compiled
    used_moves = [move for move, is_used in zip(known.values(), used, strict=True) if is_used]
    weights = weights[used]
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not np.isfinite(total):  # the sum may overflow
        weights = weights / weights.max()
        total = weights.sum()
    weights = weights / (total or 1.0)
    if weights[0] == 0 or weights[1] == 0:
        raise ValueError(
            f"moves={dict(moves)}: grow and prune need positive weights, or the sampler could not "
            "reach every tree."
        )
    return make_weighted_moves(tuple(used_moves), weights)
