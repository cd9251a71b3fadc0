"""The driver's part of a visit: message about a tree, decision by the answer, new leaf values."""

from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import DirectCalls
from pymc_trees.core.forest.trees import make_trees, preorder
from pymc_trees.core.leaves.normal import conditional, make_normal
from pymc_trees.core.moves.catalogue import MOVES
from pymc_trees.core.moves.contract import FULL, WeightedMoves
from pymc_trees.sharded.kernels.moves import (
    Draft,
    ShardedForest,
    decide,
    draft_move,
    list_leaves,
    make_buffers,
    top_of,
    write_rules,
)
from pymc_trees.sharded.kernels.shard import (
    MAX_SUM,
    NO_EXTENT,
    NO_LEAVES,
    NO_NODES,
    NO_RULES,
    Answer,
    Extent,
    Leaves,
    Message,
    Rules,
)


class FullPoolError(Exception):
    """The trees have outgrown the pool of nodes."""


class ResidualOverflowError(Exception):
    """Residuals are too large for their fixed-point unit."""


class Scale(NamedTuple):
    """Unit of residuals, and prior mean of leaf values."""

    unit: float
    mean: float
    """Prior mean of a leaf value; residuals are relative to its sum over the trees."""
    sd: float


@njit(cache=True)
def draw_leaves(rng, forest, leaf, unit, mean, nodes, n_nodes, bound, stats):
    """Draw values of the leaves of the open tree, rounded to the unit; False if out of range."""
    trees, fixed, total = forest.trees, forest.fixed, forest.sum
    for k in range(n_nodes):
        node = nodes[k]
        if trees.column[node] < 0:
            stats[0] = leaf.w[0] * trees.count[node]
            stats[1] = leaf.w[0] * (unit * total[node])
            centre, precision = conditional(leaf, stats)
            value = np.rint((centre + rng.standard_normal() / np.sqrt(precision)) / unit)
            if not abs(value) < bound:
                return False
            fixed[node] = np.int64(value)
            trees.values[node, 0] = mean + unit * value
    return True


class Driver:
    """The trees and the random generator of one chain.

    Parameters
    ----------
    rng : numpy.random.Generator
    design : Design
        Of all rows, without cells.
    prior : CGMPrior
    scale : Scale
    sizes : m, max_nodes, n_rows
    moves : WeightedMoves
        Grow, prune, change and swap.
    """

    def __init__(self, rng, design, prior, scale: Scale, sizes: tuple, moves: WeightedMoves):
        m, max_nodes, self.n_rows = sizes
        self.rng, self.scale, self.moves = rng, scale, moves
        trees = make_trees(m, max_nodes, 1, 0)
        trees.count[:m] = self.n_rows
        trees.values[:m] = scale.mean
        trees.unsplittable[:m] = not design.varies.any()
        varies = np.zeros((max_nodes, design.varies.size), dtype=np.bool_)
        varies[:m] = design.varies
        fixed, total = np.zeros((2, max_nodes), dtype=np.int64)
        self.forest = ShardedForest(trees, design, prior, varies, fixed, total)
        self.work = make_buffers(max_nodes)
        self.counts = np.zeros((2, len(MOVES)), dtype=np.int64)
        self.closed, self.moved = NO_LEAVES, NO_NODES
        self.draft = Draft(-1, -1, -1)
        self.extent = np.zeros(2)
        self.square_sum = 0
        """Sum of squared residuals after a sweep, in squared units."""
        self.bound = MAX_SUM / self.n_rows
        self.call = DirectCalls()

    def start(self) -> Generator[Message, Answer, None]:
        """Draft the first move. Yields messages; the caller sends back each answer."""
        yield from self._draft(0)

    def sweep(self, precision: float) -> Generator[Message, Answer, None]:
        """Visit each tree once, given the precision of the rows. Yields messages.

        Raises
        ------
        FullPoolError, ResidualOverflowError
        """
        leaf = make_normal(0.0, self.scale.sd, np.empty(0), precision, 1)
        m = self.forest.trees.roots.size
        for tree in range(m):
            opened, rules = self._propose(tree)
            draft, last = self.draft, tree == m - 1
            # A single tree is its own successor: its next move is drafted after the visit.
            asked = NO_EXTENT if m == 1 else self._drafted((tree + 1) % m)
            answer = yield self._message(opened, rules, asked, squares=last)
            self._check(answer)
            self._decide(tree, draft, leaf, opened, answer)
            self._draw(tree, leaf)
            if last:
                self._add_up_squares(answer.squares)
            if m == 1:
                yield from self._draft(tree)
            elif asked.tree >= 0:
                self.extent = answer.extent

    def residual(self) -> Generator[Message, Answer, np.ndarray]:
        """Residuals of all rows, which the generator returns. Yields messages."""
        message = self._message(NO_LEAVES, NO_RULES, NO_EXTENT, fit=True)
        answer = yield message
        return answer.fit

    def _message(self, opened, rules, asked, squares=False, fit=False) -> Message:
        message = Message(self.moved, self.closed, opened, rules, asked, squares, fit)
        self.closed, self.moved = NO_LEAVES, NO_NODES
        return message

    def _draft(self, tree: int) -> Generator[Message, Answer, None]:
        asked = self._drafted(tree)
        if asked.tree >= 0:
            answer = yield self._message(NO_LEAVES, NO_RULES, asked)
            self._check(answer)
            self.extent = answer.extent

    def _drafted(self, tree: int) -> Extent:
        """Draw the next `Draft`; return the query for its range."""
        forest, work, design = self.forest, self.work, self.forest.design
        self.draft = Draft(*self.call(draft_move, self.rng, forest, tree, self.moves, work))
        _, node, column = self.draft
        if column < 0:
            return NO_EXTENT
        if node == forest.trees.roots[tree]:
            self.extent = np.array([design.low[column], design.high[column]])
            return NO_EXTENT
        return Extent(tree, self._leaves_below(node), column)

    def _leaves_below(self, node: int) -> np.ndarray:
        work = self.work
        n = self.call(list_leaves, self.forest.trees, int(node), work, work.nodes)
        return work.nodes[:n].copy()

    def _propose(self, tree: int) -> tuple[Leaves, Rules]:
        """The current tree, and the subtree that the draft proposes."""
        forest, work, draft = self.forest, self.work, self.draft
        nodes = self._leaves_below(forest.trees.roots[tree])
        opened = Leaves(tree, nodes, forest.fixed[nodes])
        if draft.kind < 0:
            return opened, NO_RULES
        replaced = self._leaves_below(top_of(forest.trees, draft.kind, draft.node))
        low, high = map(float, self.extent)
        n = self.call(write_rules, self.rng, forest, *draft, low, high, work)
        parts = (part[:n].copy() for part in (work.column, work.cut, work.left, work.right))
        return opened, Rules(replaced, *parts)

    def _decide(self, tree: int, draft: Draft, leaf, opened: Leaves, answer: Answer) -> None:
        forest, work = self.forest, self.work
        forest.sum[opened.nodes] = answer.sums
        if draft.kind < 0:
            return
        counted = answer.counted
        given = (leaf, self.scale.unit, tree, draft.kind, draft.node, self.moves, counted, work)
        outcome = self.call(decide, self.rng, forest, *given)
        if outcome == FULL:
            raise FullPoolError
        self.counts[0, draft.kind] += 1
        self.counts[1, draft.kind] += outcome
        if outcome == 1:
            self.moved = work.moved[: counted.count.size].copy()

    def _draw(self, tree: int, leaf) -> None:
        """Draw values of all leaves; the next message closes the tree with them."""
        forest, work = self.forest, self.work
        n_nodes = self.call(preorder, forest.trees, int(forest.trees.roots[tree]), work.nodes)
        unit, mean = self.scale.unit, self.scale.mean
        given = (leaf, unit, mean, work.nodes, n_nodes, self.bound, work.stats)
        if not self.call(draw_leaves, self.rng, forest, *given):
            raise ResidualOverflowError
        nodes = work.nodes[:n_nodes]
        leaves = nodes[forest.trees.column[nodes] < 0]
        self.closed = Leaves(tree, leaves, forest.fixed[leaves])

    def _check(self, answer: Answer) -> None:
        if not answer.largest < self.bound:
            raise ResidualOverflowError

    def _add_up_squares(self, squares: int) -> None:
        """Exact sum of squared residuals, including the new values of the last tree."""
        forest, nodes = self.forest, self.closed.nodes
        for v, total, n in zip(
            forest.fixed[nodes].tolist(),
            forest.sum[nodes].tolist(),
            forest.trees.count[nodes].tolist(),
            strict=True,
        ):
            squares += n * v * v - 2 * v * total
        self.square_sum = squares
