"""Readable trees: indented text of an encoded value.

A split is a line ``column <= cut``; below it, indented, follow the side that satisfies it and then
the other. A leaf is a line with its values. Columns with levels or missing cells read ``column in
{a, c} or missing``.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from pymc_trees.core.columns.cells import LEFT, MAX_CUT, MAX_LEVELS, MISSING, SET
from pymc_trees.core.value.fields import LEAF, UNUSED, Layout

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
