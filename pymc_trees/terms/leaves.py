"""Leaves of forests as columns of a linear regression."""

import numpy as np

from pymc_trees.terms.kernels.gram import (
    WORD,
    clear_block,
    count_pairs,
    fill_block,
    number_leaves,
    number_rows,
    set_bits,
)

ROWS_AT_ONCE = 512
"""Rows of a block of the dense matrix of leaves."""
MOST_LEAVES = 1_000
"""Leaf values drawn at once, whatever their cost."""


def sweep_cost(n: int, n_trees: int) -> float:
    """Cost of a step of `Hybrid`, in milliseconds (`benchmarks/notes/gaussian_terms.md`)."""
    return n_trees * (0.04 + 9e-6 * n)


def affordable_leaves(n: int, n_trees: int, by_bits: bool) -> int:
    """Leaf values whose cross products cost about half a sweep.

    Parameters
    ----------
    by_bits : bool
        Whether pairs of leaves are counted (`gram_of`) instead of multiplied.
    """
    pair = 4e-9 * n + 1e-5 if by_bits else 4.5e-8 * n
    return min(MOST_LEAVES, int((0.5 * sweep_cost(n, n_trees) / pair) ** 0.5))


def steps_between(n: int, n_trees: int, n_coefficients: int, n_hypers: int) -> int:
    """Steps of the forests for each joint draw: more where vectors are so long that they cost more.

    Parameters
    ----------
    n_coefficients : int
        Of all vectors.
    n_hypers : int
        Hyperparameters, each with some seven evaluations of a density.
    """
    p, K = affordable_leaves(n, n_trees, by_bits=True), n_coefficients
    cost = (1 + 7 * n_hypers) * 1.4e-8 * K**3 + 1e-7 * min(p, 3 * n_trees) * K * (2 * K + p)
    return max(1, round(cost / sweep_cost(n, n_trees)))


class ForestLeaves:
    """Coefficients of the leaves of some trees of a forest.

    Parameters
    ----------
    forest : ForestData
    state : ForestState
    settings : Settings
        Of its prior.
    index, factor : (n, r)
        Which outputs the mean has in each row, and what they are multiplied by.
    chosen : (t,) int64
        The trees.
    start : int
        Coefficients of the forests before.
    """

    def __init__(self, forest, state, settings, index, factor, chosen, start: int):
        self.forest, self.state, self.settings = forest, state, settings
        self.chosen, self.start, self.n = chosen, start, len(factor)
        trees, layout = state.trees, forest.layout
        number = np.empty(trees.column.size, dtype=np.int64)
        first = np.empty(chosen.size + 1, dtype=np.int64)
        self.nodes = number_leaves(trees, chosen, state.work.nodes, number, first)
        # of a leaf with slopes the intercept is drawn, given the slopes
        self.intercepts = layout.own_outputs is not None
        d = 1 if self.intercepts else layout.n_values
        self.n_values = d * self.nodes.size
        self.first = start + d * first
        self.rows_of = np.empty((chosen.size, self.n), dtype=np.int64)
        number_rows(trees.leaf_of, chosen, start + d * number, self.rows_of)
        self.by = factor
        """(n, d) what the coefficients of a row's leaf are multiplied by."""
        if layout.n_outputs > 1 or factor.shape[1] > 1:
            self.by = np.zeros((self.n, d))
            np.add.at(self.by, (np.arange(self.n)[:, None], index % layout.n_outputs), factor)
        mean, sd = (np.broadcast_to(v, (d,)) for v in settings.leaf[:2])
        self.mean, self.sd = np.tile(mean, self.nodes.size), np.tile(sd, self.nodes.size)

    @property
    def level(self) -> tuple[np.ndarray, float] | None:
        """Rows that have the forest in their mean, and its factor, if that is one number."""
        if self.by.shape[1] > 1:
            return None
        by = self.by[:, 0]
        used = by != 0
        level = by[used][0] if used.any() else 1.0
        return (used, float(level)) if (by[used] == level).all() else None

    def fixed_outputs(self) -> np.ndarray:
        """(n,) what the mean has of the forest apart from the coefficients to be drawn."""
        trees, outputs = self.state.trees, self.state.fit
        values = np.zeros_like(trees.values)
        d = self.by.shape[1]
        values[self.nodes, :d] = trees.values[self.nodes, :d]
        drawn = np.zeros((self.n, d))
        for t in self.chosen:
            drawn += values[trees.leaf_of[t], :d]
        return ((outputs - drawn) * self.by).sum(axis=1)

    def store(self, u: np.ndarray):
        """State of the forest with new coefficients, of all forests one after the other."""
        d = self.by.shape[1]
        new = u[self.start : self.start + self.n_values].reshape(-1, d)
        self.state.trees.values[self.nodes, :d] = new
        return self.forest.store(self.state, self.settings)


def choose_trees(rng, forests, states, most: int) -> list[np.ndarray]:
    """Trees whose leaf values are drawn: all, or some at random where there are more than ``most``.

    Which trees are chosen depends on their number of leaves alone, which the draw does not change.
    """
    n_trees = [one.trees.roots.size for one in states]
    total = 0
    for forest, one, m in zip(forests, states, n_trees, strict=True):
        used = one.trees.column.size - int(one.trees.n_free[0])
        leaves = (used + m) // 2  # a binary tree of k nodes has (k + 1) / 2 leaves
        total += leaves * (1 if forest.layout.own_outputs is not None else forest.layout.n_values)
    if total <= most:
        return [np.arange(m) for m in n_trees]
    some = [max(1, int(m * most / total)) for m in n_trees]
    return [np.sort(rng.choice(m, k, replace=False)) for m, k in zip(n_trees, some, strict=True)]


def gram_of(leaves: list[ForestLeaves], w: np.ndarray) -> np.ndarray:
    """(p, p) B'WB, at least its lower triangle.

    With one precision for all rows, and one factor for each forest, pairs of leaves are counted by
    bits; else blocks of rows are multiplied.
    """
    n, p = leaves[0].n, sum(part.n_values for part in leaves)
    gram = np.zeros((p, p))
    levels = [level for part in leaves if (level := part.level) is not None]
    if w.size == 1 and len(levels) == len(leaves):
        bits = np.zeros((p, -(-n // WORD)), dtype=np.uint64)
        after, by = np.empty(p, dtype=np.int64), np.empty(p)
        for part, (used, factor) in zip(leaves, levels, strict=True):
            place = slice(part.start, part.start + part.n_values)
            set_bits(part.rows_of, used, bits)
            after[place] = np.repeat(part.first[1:], np.diff(part.first))
            by[place] = factor
        count_pairs(bits, after, gram)
        gram *= w[0] * by[:, None] * by
        return gram
    block = np.zeros((p, min(n, ROWS_AT_ONCE)))
    root = np.sqrt(w)
    weighted = [part.by * (root[:, None] if w.size > 1 else root[0]) for part in leaves]
    for first in range(0, n, ROWS_AT_ONCE):
        width = min(ROWS_AT_ONCE, n - first)
        for part, numbers in zip(leaves, weighted, strict=True):
            fill_block(part.rows_of, numbers, first, width, block)
        gram += block[:, :width] @ block[:, :width].T
        for part in leaves:
            clear_block(part.rows_of, part.by.shape[1], first, width, block)
    return gram
