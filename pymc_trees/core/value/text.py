"""Readable trees: indented text of an encoded value.

A split is a line ``column <= cut``; below it, indented, follow the side that satisfies it and then
the other. A leaf is a line with its values. Columns with levels or missing cells read ``column in
{a, c} or missing``.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.cells import LEFT, MAX_CUT, MAX_LEVELS, MISSING, SET
from pymc_trees.core.value.fields import LEAF, UNUSED, Layout

# -------------------------- Simple traversal of an encoded value with its training rows, for checks


class Encoded(NamedTuple):
    """An encoded value and the data it refers to."""

    value: np.ndarray
    X: np.ndarray
    """(n, p) training inputs."""
    layout: Layout
    fingerprint: float
    grid: list[np.ndarray] | None
    weights: np.ndarray
    """(p,) split weights."""
    kinds: np.ndarray
    """(p,) kinds of the columns, as in `mixed`."""

    @property
    def certificate(self) -> np.ndarray:
        """Entries after the node rows, as one vector."""
        return self.value[self.layout.max_nodes :].reshape(-1)


class Node(NamedTuple):
    """A node of an encoded value, as reached by the traversal."""

    row: int
    tree: int
    column: int
    """Split column; -1 in a leaf."""
    rule_kind: int
    """Kind of its rule (`mixed`)."""
    cut: float
    leaf_values: np.ndarray
    """Of a leaf."""
    rest: np.ndarray
    """Fields after the cut or the leaf values."""
    rows: np.ndarray
    """Training rows that reach it."""
    start: float
    """Time of the parent's split, where splits have times; 0 at a root."""
    time: float
    """Time of its split, where splits have times; infinite otherwise."""


class Expected(NamedTuple):
    """Properties of a node derived from its training rows."""

    unsplittable: bool
    log_cut: float
    log_column: float


def walk(encoded: Encoded) -> list[Node]:
    """All nodes in preorder with the training rows that reach them."""
    value, X, layout = encoded.value, encoded.X, encoded.layout
    starts = tree_starts(value, layout)
    nodes = []
    for tree in range(layout.m):
        waiting = [(np.arange(len(X)), 0.0)]
        for row in range(starts[tree], starts[tree + 1]):
            rows, start = waiting.pop()
            rule_kind, column = divmod(int(value[row, 0]), X.shape[1])
            column = -1 if value[row, 0] < 0 else column
            leaf_values = value[row, 1 : 1 + layout.n_values]
            rest = value[row, 2 if column >= 0 else 1 + layout.n_values :]
            time = np.inf
            if layout.timed and column >= 0:
                rest, time = rest[:-1], rest[-1]
            cut = value[row, 1]
            node = Node(row, tree, column, rule_kind, cut, leaf_values, rest, rows, start, time)
            nodes.append(node)
            if column >= 0:
                goes_left = sent_left(X[rows, column], rule_kind, cut)
                waiting += [(rows[~goes_left], time), (rows[goes_left], time)]
    return nodes


def cells_of(X: np.ndarray, grid: list[np.ndarray] | None) -> np.ndarray:
    """Cells as used by rules: the inputs, or the number of grid cuts below each.

    Columns without grid cuts, including levels, and missing cells are unchanged.
    """
    if grid is None:
        return X
    cells = [(cuts < x[:, None]).sum(axis=1) if len(cuts) else x for cuts, x in zip(grid, X.T)]
    return np.where(X == MISSING, X, np.column_stack(cells))


def sent_left(x: np.ndarray, rule_kind: int, cut: float) -> np.ndarray:
    """Which cells of a split's column go left."""
    if rule_kind < 2:
        left = x <= cut
    else:
        left = np.array([int(cut) >> int(max(v, 0)) & 1 == 1 for v in x], dtype=bool)
    return np.where(x == MISSING, rule_kind % 2 == 1, left)


def expect(encoded: Encoded, rows: np.ndarray, node: Node | None) -> Expected:
    """Prior terms of a node with these rows, and this split (None for a leaf)."""
    cells = cells_of(encoded.X[rows], encoded.grid)
    usable = (cells.min(axis=0) < cells.max(axis=0)) & (encoded.weights > 0)
    if node is None:
        return Expected(not usable.any(), 0.0, 0.0)
    weights = np.ptp(cells, axis=0) if encoded.layout.timed else encoded.weights
    share = weights[node.column] / weights[usable].sum()
    density = rule_density(
        cells[:, node.column], node.rule_kind, node.cut, encoded.kinds[node.column]
    )
    return Expected(False, np.log(density * (0.5 if encoded.layout.mixed else 1.0)), np.log(share))


def rule_density(x: np.ndarray, rule_kind: int, cut: float, kind: int) -> float:
    """Density of a split given its column, whose cells are ``x``, and the side of missing rows."""
    present = np.unique(x[x != MISSING])
    density = 1.0
    if (x == MISSING).any():
        p_missing_split = 1.0 if len(present) == 1 else 1.0 / (1 + len(present))
        splits_missing = (
            rule_kind >= 2 and len(set(sent_left(x[x != MISSING], rule_kind, cut))) == 1
        )
        if splits_missing or (rule_kind < 2 and abs(cut) == MAX_CUT):
            return p_missing_split
        density -= p_missing_split
    if kind == 0:
        return density / float(present[-1] - present[0])
    if kind < 0:
        return density / len(present)
    return density / (2.0 ** len(present) - 2) / 2.0 ** (kind - len(present))


# -------------------------------------------------------------------------------------------------


# ---------------------------- Formatted numbers, with as many digits as needed to distinguish them


MIN_DIGITS, MAX_DIGITS = 4, 17
"""Significant digits: the minimum, and those that determine a float exactly."""


def cut_text(cut: float, cells: np.ndarray | None = None) -> str:
    """Fewest digits with which a cut gives the same partition of cells.

    Parameters
    ----------
    cut : float
        Cells at most as large go left.
    cells : (k,) array, optional
        Distinct cells of the column, sorted. Default: none, which gives 4 digits.
    """
    if cells is None:
        return _format(cut, MIN_DIGITS)
    left = np.searchsorted(cells, cut, side="right")
    texts = (_format(cut, digits) for digits in range(MIN_DIGITS, MAX_DIGITS))
    same = (t for t in texts if np.searchsorted(cells, float(t), side="right") == left)
    return next(same, _format(cut, MAX_DIGITS))


def number_labels(values: Iterable[float]) -> list[str]:
    """Fewest digits, 4 or more, with which different numbers are printed differently.

    NaN is printed as "missing".
    """
    numbers = np.array(list(values), dtype=np.float64)
    n_distinct = np.unique(numbers).size
    for digits in range(MIN_DIGITS, MAX_DIGITS + 1):
        texts = ["missing" if np.isnan(x) else _format(x, digits) for x in numbers]
        if len(set(texts)) == n_distinct:
            break
    return texts


def level_labels(levels: Sequence) -> list[str]:
    """Text of levels; numbers as short as possible."""
    if all(isinstance(level, int | float) and not isinstance(level, bool) for level in levels):
        return number_labels(levels)
    return [str(level) for level in levels]


def _format(number: float, digits: int) -> str:
    """Text with a number of significant digits, without an exponent if that is not longer."""
    text = f"{number:.{digits}g}"
    if "e" not in text:
        return text
    return min(np.format_float_positional(float(text), trim="-"), text, key=len)


# --------------------------------------------------------------------------------------------------


INDENT = "    "


def tree_starts(value: np.ndarray, layout: Layout) -> list[int]:
    """Row where each tree starts, and the row after the last tree: m + 1 numbers.

    Raises
    ------
    ValueError
        When the node rows do not hold m complete trees.
    """
    starts = [0]
    for tree in range(layout.m):
        row, branches = starts[-1], 1
        while branches > 0:
            if row >= layout.max_nodes:
                raise ValueError(f"tree {tree} does not end within max_nodes={layout.max_nodes}.")
            kind = value[row, 0]
            if not (kind >= 0 or kind == LEAF):
                content = "an unused row" if kind == UNUSED else f"field 0 = {kind:g}"
                raise ValueError(f"tree {tree} is cut short: row {row} is {content}.")
            branches += 1 if kind >= 0 else -1
            row += 1
        starts.append(row)
    return starts


def tree_text(
    value: np.ndarray,
    layout: Layout,
    tree: int,
    names: Sequence[str] | None = None,
    levels: Sequence[Sequence | None] | None = None,
    X: np.ndarray | None = None,
) -> str:
    """Text of one tree of an encoded forest.

    Parameters
    ----------
    value : (rows, fields) array
        Encoded forest.
    layout : Layout
        Its sizes.
    tree : int
        Number of the tree, 0 to m - 1.
    names : sequence of p str, optional
        Names of the columns; default x0, x1, ... Needed where columns have levels or missing cells.
    levels : sequence of p sequences or None, optional
        Levels of each column by their code; default the codes.
    X : (n, p) array, optional
        Training rows: cuts have enough digits to give the same partition. Default: 4 digits.

    Raises
    ------
    ValueError
        If the tree does not exist, or the value is not a forest.
    """
    if not 0 <= tree < layout.m:
        raise ValueError(f"tree={tree}: the forest has the trees 0 to {layout.m - 1}.")
    if layout.mixed and names is None:
        raise ValueError("names: a forest with levels or missing cells needs the column names.")
    starts = tree_starts(value, layout)
    cells = None if X is None else distinct_cells(X)
    lines, depths = [], [0]
    for row in range(starts[tree], starts[tree + 1]):
        depth = depths.pop()
        code, cut = int(value[row, 0]), value[row, 1]
        if code >= 0:
            if layout.mixed and names is not None:
                line = rule_text(code, cut, names, levels, cells)
            else:
                name = f"x{code}" if names is None else names[code]
                line = f"{name} <= {cut_text(cut, None if cells is None else cells[code])}"
            lines.append(f"{INDENT * depth}{line}")
            depths += [depth + 1, depth + 1]
        else:
            leaf = ", ".join(f"{v:.4g}" for v in value[row, 1 : 1 + layout.n_values])
            lines.append(f"{INDENT * depth}leaf {leaf}")
    return "\n".join(lines)


def distinct_cells(X: np.ndarray) -> list[np.ndarray]:
    """Distinct cells of each column, sorted, without missing ones."""
    return [np.unique(column[column != MISSING]) for column in X.T]


def rule_text(
    code: int,
    cut: float,
    names: Sequence[str],
    levels: Sequence[Sequence | None] | None = None,
    cells: Sequence[np.ndarray] | None = None,
) -> str:
    """Condition of the rows that a rule of `mixed` sends left; cells as `distinct_cells` has them.

    An ordered column is cut between two of its levels.
    """
    rule_kind, column = divmod(code, len(names))
    name, missing_left = names[column], bool(rule_kind & LEFT)
    column_levels = None if levels is None else levels[column]
    labels = None if column_levels is None else level_labels(column_levels)
    if rule_kind < SET:
        if abs(cut) == MAX_CUT:
            return f"{name} is {'missing' if missing_left else 'present'}"
        if labels is None:
            last = cut_text(cut, None if cells is None else cells[column])
        else:
            last = labels[min(int(cut), len(labels) - 1)]
        return f"{name} <= {last}" + " or missing" * missing_left
    inside = [k for k in range(MAX_LEVELS) if int(cut) >> k & 1]
    if missing_left and not inside:
        return f"{name} is missing"
    if labels is not None and len(inside) == len(labels) and not missing_left:
        return f"{name} is present"
    shown = ", ".join(str(k) if labels is None else labels[k] for k in inside)
    return f"{name} in {{{shown}}}" + " or missing" * missing_left


def forest_text(
    value: np.ndarray,
    layout: Layout,
    names: Sequence[str] | None = None,
    levels: Sequence[Sequence | None] | None = None,
    X: np.ndarray | None = None,
) -> str:
    """Text of all trees, each under a line with its number; see `tree_text`."""
    texts = (tree_text(value, layout, tree, names, levels, X) for tree in range(layout.m))
    return "\n".join(f"tree {tree}\n{text}" for tree, text in enumerate(texts))
