"""Leaves of forests as columns of a linear regression."""

import numpy as np

from pymc_trees.core.leaves.coefficients import PARENT
from pymc_trees.core.soft_forest.encode import SoftLayout
from pymc_trees.core.soft_forest.trees import SoftTrees
from pymc_trees.terms.gram import (
    ROWS_AT_ONCE,
    WORD,
    DenseLeaves,
    add_cross,
    add_outputs,
    add_sums,
    bits_of_column,
    clear_block,
    count_cross,
    count_pairs,
    fill_block,
    fill_lines,
    fill_weights,
    number_leaves,
    set_bits,
)

# -------- Leaves of soft forests as columns of a linear regression: dense ones, computed row by row
#
# Every row is in every leaf, with the weights of `core.soft_forest.trees`: given cuts and
# bandwidths these are known, and leaf values enter the mean linearly.


class SoftLeaves(DenseLeaves):
    """Coefficients of the leaves of some trees of a soft forest.

    Parameters
    ----------
    forest : SoftForestData
    state : SoftForestState
    settings : Settings
        Of its prior.
    index, factor : (n, r)
        As for `leaves.ForestLeaves`.
    chosen : (t,) int64
        The trees.
    start : int
        Coefficients of the forests before.
    """

    def __init__(self, forest, state, settings, index, factor, chosen, start: int):
        self.forest, self.state, self.settings = forest, state, settings
        trees, n_chosen = state.trees, chosen.size
        self.is_whole = n_chosen == trees.size.size
        self.trees = trees if self.is_whole else SoftTrees(*(part[chosen] for part in trees))
        used = np.arange(trees.column.shape[1]) < self.trees.size[:, None]
        tree, node = np.nonzero(used & (self.trees.column < 0))
        self.at = chosen[tree], node
        """Tree and node of each coefficient, in preorder."""
        self.start, self.n_values, self.n = start, node.size, len(factor)
        self.by = np.ascontiguousarray(factor.sum(axis=1))
        """(n,) what the function is multiplied by."""
        mean, sd = settings.leaf[:2]
        self.mean, self.sd = np.full(node.size, mean), np.full(node.size, sd)

    def fixed_outputs(self):
        """(n,) what the mean has of the forest apart from the coefficients to be drawn."""
        if self.is_whole:
            return 0.0
        return (self.state.fit - self.forest.add_up(self.trees))[:, 0] * self.by

    def write(self, part, rows, root):
        """Write rows of sqrt(W) B."""
        unit = np.ascontiguousarray(self.forest.unit[:, rows])
        fill_weights(self.trees, unit, self.forest.hard, (self.by * root)[rows], part)

    def store(self, u):
        """State of the forest with new coefficients, of all forests one after the other."""
        self.state.trees.number[self.at] = u[self.place]
        return self.forest.store(self.state, self.settings)


# ------ Leaves with slopes as columns of a linear regression: intercepts, and the slopes that exist
#
# Which slopes a leaf has (its path, and whether it is constant instead) is given, as the trees are.


def coefficients_of(trees, nodes: np.ndarray, kind: int) -> tuple[np.ndarray, np.ndarray]:
    """Which entries of its values each leaf has: (p,) places of leaves, and entries.

    Parameters
    ----------
    nodes : (L,) int64
        The leaves.
    kind : int
        As in `core.leaves.coefficients.LinearData`.
    """
    code = np.maximum(trees.values[nodes, -1], 0.0).astype(np.int64)
    n_slopes = trees.values.shape[1] - 2
    if kind == PARENT:
        has = code[:, None] > 0
    else:
        has = (code[:, None] >> np.arange(n_slopes)) & 1 == 1
    return np.nonzero(np.column_stack([np.ones(len(nodes), dtype=bool), has]))


class LinearLeaves(DenseLeaves):
    """Coefficients of the leaves of some trees of a forest with a `LinearLeaf`.

    Parameters
    ----------
    forest, state, settings, index, factor, chosen, start
        As for `leaves.ForestLeaves`.
    """

    def __init__(self, forest, state, settings, index, factor, chosen, start: int):
        self.forest, self.state, self.settings = forest, state, settings
        self.chosen, self.start, self.n = chosen, start, len(factor)
        trees, lines = state.trees, forest.target.likelihood.outputs
        number = np.zeros(trees.column.size, dtype=np.int64)
        first = np.empty(chosen.size + 1, dtype=np.int64)
        nodes = number_leaves(trees, chosen, state.work.nodes, number, first)
        leaf, entry = coefficients_of(trees, nodes, lines.kind)
        self.at = nodes[leaf], entry
        """Node and entry of each coefficient."""
        self.n_values, self.z = leaf.size, lines.z
        self.slope = entry - 1
        if lines.kind == PARENT:
            code = trees.values[nodes[leaf], -1].astype(np.int64)
            self.slope = np.where(entry > 0, code - 1, -1)
        ends = np.cumsum(np.bincount(leaf, minlength=nodes.size))
        self.begin, self.end = (np.zeros(number.size, dtype=np.int64) for _ in range(2))
        self.begin[nodes], self.end[nodes] = np.concatenate([[0], ends[:-1]]), ends
        self.by = np.ascontiguousarray(factor.sum(axis=1))
        """(n,) what the function is multiplied by."""
        mean, sd, slope_sd = settings.leaf[:3]
        self.mean, self.sd = np.where(entry > 0, 0.0, mean), np.where(entry > 0, slope_sd, sd)

    def write(self, part, rows, root):
        """Write rows of sqrt(W) B."""
        part[:] = 0.0
        by = (self.by * root)[rows]
        lines = self.begin, self.end, self.slope, self.z, by, rows.start, part
        fill_lines(self.state.trees.leaf_of, self.chosen, *lines)

    def fixed_outputs(self):
        """(n,) what the mean has of the forest apart from the coefficients to be drawn."""
        trees = self.state.trees
        if self.chosen.size == trees.roots.size:
            return 0.0
        one, drawn = np.ones(self.n), np.empty(self.n)
        for first in range(0, self.n, ROWS_AT_ONCE):
            rows = slice(first, min(first + ROWS_AT_ONCE, self.n))
            columns = np.empty((self.n_values, rows.stop - first))
            self.write(columns, rows, one)
            drawn[rows] = trees.values[self.at] @ columns
        return self.state.fit[:, 0] * self.by - drawn

    def store(self, u):
        """State of the forest with new coefficients, of all forests one after the other."""
        self.state.trees.values[self.at] = u[self.place]
        return self.forest.store(self.state, self.settings)


# -------------------------------------------------------------------------------------------------


MOST_COUNTED = 200
"""Groups whose rows are counted by bits: of more, adding up is faster."""
MOST_LEAVES = 1_000
"""Leaf values drawn at once, whatever their cost."""


def sweep_cost(n: int, n_trees: int, n_soft: int = 0) -> float:
    """Cost of a step of `Hybrid` and of `SoftCGM`, in ms (`benchmarks/notes/gaussian_terms.md`).

    Parameters
    ----------
    n_trees, n_soft : int
        Trees of hard forests, and of soft ones.
    """
    visits = n * n_soft  # of a row in a tree, in one sweep
    return n_trees * (0.04 + 9e-6 * n) + 2e-5 * max(visits, min(10 * visits, 100_000))


def affordable_leaves(n: int, sweep: float, by_bits: bool) -> int:
    """Leaf values whose cross products cost about an eighth of a sweep.

    Parameters
    ----------
    sweep : float
        `sweep_cost` of all forests.
    by_bits : bool
        Whether pairs of leaves are counted (`products`) instead of multiplied.
    """
    pair = 4e-9 * n + 1e-5 if by_bits else 4.5e-8 * n
    return min(MOST_LEAVES, int((0.125 * sweep / pair) ** 0.5))


def steps_between(n: int, n_trees: int, sweep: float, n_coefficients: int, n_hypers: int) -> int:
    """Steps of the forests for each joint draw: more where vectors are so long that they cost more.

    Parameters
    ----------
    n_coefficients : int
        Of all vectors.
    n_hypers : int
        Hyperparameters, each with some seven evaluations of a density.
    """
    p, K = affordable_leaves(n, sweep, by_bits=True), n_coefficients
    cost = (1 + 7 * n_hypers) * 1.4e-8 * K**3 + 1e-7 * min(p, 3 * n_trees) * K * (2 * K + p)
    return max(1, round(cost / sweep))


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
        d = layout.n_values
        self.n_values = d * self.nodes.size
        self.first = start + d * first
        self.place = trees.leaf_of, chosen, start + d * number
        """The node of each row in each tree, the trees, and the coefficient of each node."""
        self.by = np.ascontiguousarray(factor.T)
        """(d, n) what the coefficients of a row's leaf are multiplied by."""
        if layout.n_outputs > 1 or factor.shape[1] > 1:
            self.by = np.zeros((d, self.n))
            np.add.at(self.by, (index % layout.n_outputs, np.arange(self.n)[:, None]), factor)
        mean, sd = (np.broadcast_to(v, (d,)) for v in settings.leaf[:2])
        self.mean, self.sd = np.tile(mean, self.nodes.size), np.tile(sd, self.nodes.size)

    @property
    def level(self) -> tuple[np.ndarray, float] | None:
        """Rows that have the forest in their mean, and its factor, if that is one number."""
        if len(self.by) > 1:
            return None
        by = self.by[0]
        used = by != 0
        level = by[used][0] if used.any() else 1.0
        return (used, float(level)) if (by[used] == level).all() else None

    def fixed_outputs(self) -> np.ndarray | float:
        """(n,) what the mean has of the forest apart from the coefficients to be drawn."""
        trees, outputs = self.state.trees, self.state.fit
        if self.chosen.size == trees.roots.size:
            return 0.0
        drawn = np.zeros(self.n)
        add_outputs(trees.leaf_of, self.chosen, trees.values, self.by, drawn)
        return (outputs * self.by.T).sum(axis=1) - drawn

    def store(self, u: np.ndarray):
        """State of the forest with new coefficients, of all forests one after the other."""
        d = len(self.by)
        new = u[self.start : self.start + self.n_values].reshape(-1, d)
        self.state.trees.values[self.nodes] = new
        return self.forest.store(self.state, self.settings)


def _sizes(forest, state) -> tuple[int, int]:
    """Trees of a forest, and coefficients of their leaves."""
    trees = state.trees
    if isinstance(trees, SoftTrees):
        return trees.size.size, (int(trees.size.sum()) + trees.size.size) // 2
    m, used = trees.roots.size, trees.column.size - int(trees.n_free[0])
    if has_lines(forest):
        is_leaf = trees.column < 0
        is_leaf[trees.free[: trees.n_free[0]]] = False
        nodes = np.flatnonzero(is_leaf)
        return m, coefficients_of(trees, nodes, forest.target.likelihood.outputs.kind)[0].size
    leaves = (used + m) // 2  # a binary tree of k nodes has (k + 1) / 2 leaves
    return m, leaves * forest.layout.n_values


def has_lines(forest) -> bool:
    """Whether leaves have slopes."""
    return forest.layout.own_outputs is not None


def kind_of(forest) -> type[ForestLeaves | SoftLeaves | LinearLeaves]:
    """The class of the leaves of a forest (a `ForestData` or `SoftForestData`)."""
    if isinstance(forest.layout, SoftLayout):
        return SoftLeaves
    return LinearLeaves if has_lines(forest) else ForestLeaves


def choose_trees(rng, forests, states, most: int) -> list[np.ndarray]:
    """Trees whose leaf values are drawn: all, or some at random where there are more than ``most``.

    Which trees are chosen depends on their number of leaves alone, which the draw does not change.
    """
    sizes = [_sizes(forest, one) for forest, one in zip(forests, states, strict=True)]
    n_trees, total = [m for m, _ in sizes], sum(values for _, values in sizes)
    if total <= most:
        return [np.arange(m) for m in n_trees]
    some = [max(1, int(m * most / total)) for m in n_trees]
    return [np.sort(rng.choice(m, k, replace=False)) for m, k in zip(n_trees, some, strict=True)]


def products(
    leaves: list[ForestLeaves | DenseLeaves],
    w: np.ndarray,
    n_columns: int,
    slots: list["Slot"],
    y: np.ndarray,
):
    """B'WB (at least its lower triangle), B'WG and B'Wy.

    With one precision for all rows, and one factor for each forest, pairs of leaves are counted by
    bits, and so are the rows that leaves share with the groups of a `Slot`; else blocks of rows are
    multiplied, and columns added up.
    """
    n, p = leaves[0].n, sum(part.n_values for part in leaves)
    gram, cross, rhs = np.zeros((p, p)), np.zeros((p, n_columns)), np.zeros(p)
    hard = [part for part in leaves if isinstance(part, ForestLeaves)]
    weighted = [part.by * w for part in hard]
    for part, numbers in zip(hard, weighted, strict=True):
        add_sums(*part.place, numbers, y, rhs)
    levels = [level for part in hard if (level := part.level) is not None]
    counted = w.size == 1 and len(levels) == len(leaves)
    if counted:
        bits = np.zeros((p, -(-n // WORD)), dtype=np.uint64)
        after, by = np.empty(p, dtype=np.int64), np.empty(p)
        for part, (used, factor) in zip(hard, levels, strict=True):
            place = slice(part.start, part.start + part.n_values)
            set_bits(*part.place, used, bits)
            after[place] = np.repeat(part.first[1:], np.diff(part.first))
            by[place] = factor
        count_pairs(bits, after, gram)
        gram *= w[0] * by[:, None] * by
    else:
        dense = [part for part in leaves if isinstance(part, DenseLeaves)]
        _multiply(hard, dense, w, slots, y, gram, cross, rhs)
    for slot in slots:
        if counted and slot.bits is not None:
            count_cross(bits, slot.bits, w[0] * slot.level * by, slot.first, cross)
            continue
        for part, numbers in zip(hard, weighted, strict=True):
            add_cross(*part.place, numbers, slot.column, slot.factor, cross)
    return gram, cross, rhs


def _multiply(hard, dense, w, slots, y, gram, cross, rhs) -> None:
    """Blocks of rows: pairs of all leaves, and what dense columns still lack."""
    n, p = y.size, len(gram)
    block = np.zeros((p, min(n, ROWS_AT_ONCE)))
    weighted = [part.by * np.sqrt(w) for part in hard]
    root = np.sqrt(np.broadcast_to(w, (n,))) if dense else None
    for first in range(0, n, ROWS_AT_ONCE):
        width = min(ROWS_AT_ONCE, n - first)
        rows = slice(first, first + width)
        for part, numbers in zip(hard, weighted, strict=True):
            fill_block(*part.place, numbers, first, width, block)
        for one in dense:
            one.add_products(block, rows, root, slots, y, cross, rhs)
        gram += block[:, :width] @ block[:, :width].T
        for part in hard:
            clear_block(*part.place, len(part.by), first, width, block)


class Slot:
    """One entry of a vector, and its factor, in each row.

    Parameters
    ----------
    column : (n,) int64
        The entry, among those of all vectors.
    factor : (n,) float64
    """

    def __init__(self, column: np.ndarray, factor: np.ndarray):
        self.column, self.factor = np.ascontiguousarray(column), np.ascontiguousarray(factor)
        self.bits: np.ndarray | None = None
        """(groups, words) the rows of each entry, where the factor is one number; else None."""
        self.first, self.level = int(column.min()), float(factor[0])
        n_groups = int(column.max()) - self.first + 1
        if n_groups <= MOST_COUNTED and (factor == self.level).all():
            self.bits = np.zeros((n_groups, -(-column.size // WORD)), dtype=np.uint64)
            bits_of_column(self.column, self.first, self.bits)
