"""Problems and moves as sweeps take them: design, prior, leaf and each move by address.

The compiled code of a sweep thus serves every model and every set of moves; only the most common
kind of model has code of its own (`is_common`). Each kernel that a move or a sweep calls must be
listed here.
"""

import weakref

import numpy as np
from numba import config, typeof

from pymc_trees.core.columns.blocks import (
    Blocks,
    draw_separating,
    goes_left,
    make_blocks,
    p_separates,
    record_block,
)
from pymc_trees.core.columns.design import Design, draw_cut, varying
from pymc_trees.core.columns.mixed import column_of, rule_from_prior
from pymc_trees.core.columns.row_set import RowSet, left_rows
from pymc_trees.core.columns.rules import draw_set_rule, log_set_rule
from pymc_trees.core.columns.steps import equivalent_cuts, step_rule
from pymc_trees.core.compile.handle import Handle, Handles, made_in_kernels
from pymc_trees.core.compile.turns import Busy
from pymc_trees.core.forest.trees import Labels, Trees
from pymc_trees.core.leaves.contract import (
    add_set,
    add_sets,
    draw_leaves,
    log_marginal,
    log_marginals,
    merge_stats,
    path_below,
    reads_path,
    renew_set,
    renew_sets,
    resample_latents,
    swap_residual,
)
from pymc_trees.core.leaves.normal import NormalData
from pymc_trees.core.moves.contract import WeightedMoves, kernels_used_by, propose
from pymc_trees.core.moves.problem import NodeCounts, Problem, Workspace
from pymc_trees.core.priors.cgm import CGMPrior
from pymc_trees.core.priors.contract import (
    NodeContext,
    column_weight,
    draw_set_column,
    draw_set_split,
    draw_time,
    log_growth,
    log_set_column,
    log_set_split,
    log_split,
    log_split_at,
    log_stop,
    log_stops,
    node_summaries,
    node_summary_of_set,
    resample_times,
)

DESIGN = (
    column_of,
    varying,
    draw_cut,
    rule_from_prior,
    left_rows,
    draw_set_rule,
    log_set_rule,
    step_rule,
    equivalent_cuts,
    record_block,
    p_separates,
    draw_separating,
    goes_left,
)
PRIOR = (
    node_summary_of_set,
    node_summaries,
    log_split,
    log_stop,
    log_stops,
    log_growth,
    draw_time,
    log_split_at,
    draw_set_split,
    log_set_split,
    draw_set_column,
    log_set_column,
    column_weight,
    resample_times,
)
LEAF = (
    reads_path,
    path_below,
    swap_residual,
    add_set,
    add_sets,
    renew_set,
    renew_sets,
    resample_latents,
    merge_stats,
    log_marginal,
    log_marginals,
    draw_leaves,
)


RARE = frozenset(
    kernel.__name__
    for kernel in (
        equivalent_cuts,
        step_rule,
        record_block,
        p_separates,
        draw_separating,
        goes_left,
        log_set_rule,
        draw_set_column,
        add_set,
    )
)
"""Compiled only where a move with a positive weight uses them."""


def is_common(problem: Problem) -> bool:
    """Whether a model has sweeps of its own, without calls by address.

    Most forests have a normal leaf, columns of numbers, and the prior of `cgm`.
    """
    kinds = type(problem.leaf), type(problem.prior), type(problem.design)
    return kinds == (NormalData, CGMPrior, Design) and problem.design.columns.dtype == np.float64


class MovesByAddress:
    """Makes moves by address, for sweeps of problems of one type."""

    def __init__(self) -> None:
        self._handles = Handles({"move": (propose,)})
        self._seen: WeightedMoves | None = None
        self._called: WeightedMoves | None = None
        self._moves: tuple = ()
        self._of_moves: list[Handle | None] = []
        self._blocks = np.empty(0, dtype=np.int64)

    def __call__(self, moves: WeightedMoves, problem: Problem, work: Workspace) -> WeightedMoves:
        """The moves, to call a sweep with; those without a weight have no address."""
        if moves is self._seen:
            return self._called
        if moves.moves is not self._moves:
            self._moves, self._of_moves = moves.moves, [None] * len(moves.moves)
            self._blocks = np.zeros(len(moves.moves), dtype=np.int64)
            # What the array points to lives as long as the array.
            weakref.finalize(self._blocks, len, self._of_moves).atexit = False
        addressed = moves._replace(moves=self._blocks)

        def argument_types():
            return {
                NodeCounts: typeof(NodeCounts(1, 1, 1, 1)),
                Problem: typeof(problem),
                WeightedMoves: typeof(addressed),
                Workspace: typeof(work),
            }

        busy = None
        for k in np.flatnonzero(moves.weights > 0):
            if self._of_moves[k] is None:
                try:
                    [handle] = self._handles(argument_types, frozenset(), move=moves.moves[k])
                except Busy as error:  # another process compiles this move: continue with the next
                    busy = error
                    continue
                self._of_moves[k], self._blocks[k] = handle, handle.address
        if busy is not None:
            raise busy
        self._seen, self._called = moves, addressed
        return addressed


class ByAddress:
    """Makes problems and moves by address, of one forest.

    Parameters
    ----------
    always : bool
        Whether to call common models by address too, not only their moves.
    """

    def __init__(self, always: bool = False) -> None:
        self.always = always
        self._handles = Handles({"design": DESIGN, "prior": PRIOR, "leaf": LEAF})
        # A forest may be swept under its likelihood and under a common one, which screens it.
        self._moves = {True: MovesByAddress(), False: MovesByAddress()}

    def __call__(self, problem: Problem, work: Workspace, moves: WeightedMoves):
        """The problem, and the moves, to call a sweep with.

        Under an order of the leaf values both stay as they are: an order needs the type of the
        leaf.
        """
        if work.order is not None or config.DISABLE_JIT:
            return problem, moves
        by_address = self.always or not is_common(problem)
        if by_address:
            problem = self._call(problem, work, moves)
        return problem, self._moves[by_address](moves, problem, work)

    def _call(self, problem, work, moves):
        trees, design, prior, leaf = problem

        def argument_types():
            rows = RowSet(work.sets[0], 1, work.index)
            return {
                Trees: typeof(trees),
                Labels: typeof(trees.leaf_of[0]),
                RowSet: typeof(rows),
                NodeContext: typeof(NodeContext(0, 0.0, 0.0, False)),
                Blocks: made_in_kernels(make_blocks.py_func(1, 1)),
            }

        used = [kernels_used_by(type(moves.moves[k])) for k in np.flatnonzero(moves.weights > 0)]
        left_out = frozenset() if None in used else RARE.difference(*used)
        parts = {"design": design, "prior": prior, "leaf": leaf}
        return Problem(trees, *self._handles(argument_types, left_out, **parts))

    def __reduce__(self):
        """State without the parts that belong to a process."""
        return ByAddress, (self.always,)
