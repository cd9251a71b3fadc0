"""Sweeps of Metropolis-Hastings moves of soft trees, as a kernel of a step."""

from functools import partial

import numpy as np

from pymc_trees.arguments import check_number
from pymc_trees.core.soft_forest.proposals import GROW, MOVES, PRUNE
from pymc_trees.core.soft_forest.sweep import screened_soft_sweeps, soft_sweeps
from pymc_trees.core.soft_forest.trees import make_soft_trees
from pymc_trees.step_methods.kernels.acceptance import accepted_shares, n_changes, read_weights
from pymc_trees.step_methods.kernels.contract import CHANGES, VISITS, Kernel
from pymc_trees.step_methods.kernels.delayed_acceptance import DelayedAcceptance, is_screened

DEFAULT_MOVES = dict.fromkeys(MOVES, 0.2)

ROWS = 100_000
"""Rows times trees that a step visits unless its sweeps are given, in at most `MOST` sweeps."""
MOST = 10

LONG = 50_000
"""Rows times trees times moves beyond which interrupts are handled during the call."""


class SoftMoves(Kernel):
    """Sweeps: for each tree some moves, then new leaf values.

    Parameters
    ----------
    moves : dict or None
        Weights by name, as for `SoftCGM`.
    moves_per_visit : int
        Moves of a tree before its leaf values are drawn.
    n_sweeps : int or None
        Sweeps per step.
    """

    def __init__(self, moves, moves_per_visit, n_sweeps):
        self.weights = check_weights(DEFAULT_MOVES if moves is None else moves)
        self.per_visit = check_number("moves_per_visit", moves_per_visit, 1)
        self.n_sweeps = None if n_sweeps is None else check_number("n_sweeps", n_sweeps, 1)

    def statistics(self, forest):
        """Accepted shares."""
        more = ["accept_delayed"] if is_screened(forest) else []
        return dict.fromkeys([*(f"accept_{name}" for name in MOVES), *more], ())

    def update(self, rng, state: DelayedAcceptance | None, data):
        """Sweep the trees; adapt what delayed acceptance rests on."""
        forest, (problem, leaf) = data.forest, data.problem
        n, m = forest.layout.n_rows, forest.layout.m
        n_sweeps = self.n_sweeps or int(np.clip(ROWS // (n * m), 1, MOST))
        stop_flag = np.zeros(1, dtype=np.bool_)
        kernel, arguments = soft_sweeps, (self.weights, self.per_visit, n_sweeps, stop_flag)
        delayed = is_screened(forest)
        if delayed:
            state = state or DelayedAcceptance.start(forest, leaf)
            if data.tuning:
                state = state.averaged(leaf.offset)
            screen = state.screen(leaf, forest.layout.max_nodes)
            undo = make_soft_trees(1, problem.trees.column.shape[1])
            kernel, arguments = screened_soft_sweeps, (screen, undo, *arguments)
        names = list(self.statistics(forest))
        run = partial(forest.call, kernel, rng, problem, leaf, *arguments)
        long = n * m * n_sweeps * self.per_visit > LONG
        accepted = accepted_shares(run, stop_flag, long, len(names))
        if accepted is None:
            raise forest.too_large()
        if delayed and data.tuning:
            state = state.with_share(accepted.shares[-1])
        counts = {VISITS: m * n_sweeps, CHANGES: n_changes(MOVES, accepted.numbers[: len(MOVES)])}
        return state, dict(zip(names, accepted.shares, strict=True)) | counts


def check_weights(moves) -> np.ndarray:
    """Weights of the moves, in their order."""
    weights = read_weights(moves, list(MOVES))
    weights = weights / (weights.max() or 1.0)
    if (weights[[GROW, PRUNE, MOVES.index("bandwidth")]] == 0).any():
        raise ValueError(
            f"moves={dict(moves)}: grow, prune and bandwidth need positive weights, or the sampler "
            "could not reach every forest."
        )
    return weights / weights.sum()
