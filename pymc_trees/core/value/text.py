"""Trees for people: indented text, read off the encoded value.

A split is a line ``column <= cut``; below it, indented, come the side that satisfies it and then
the side that does not. A leaf is a line with its values. Columns with levels or missing cells read
``column in {a, c} or missing``.
"""

from collections.abc import Sequence

import numpy as np

from pymc_trees.core.columns.mixed import EVERY, LEFT, MOST_LEVELS, SET
from pymc_trees.core.value.fields import LEAF, UNUSED, Layout

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
                found = "an unused row" if kind == UNUSED else f"field 0 = {kind:g}"
                raise ValueError(f"tree {tree} is cut short: row {row} is {found}.")
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

    Raises
    ------
    ValueError
        For a number of tree that does not exist, or a value that is not a forest.
    """
    if not 0 <= tree < layout.m:
        raise ValueError(f"tree={tree}: the forest has the trees 0 to {layout.m - 1}.")
    if layout.mixed and names is None:
        raise ValueError("names: a forest with levels or missing cells needs the column names.")
    starts = tree_starts(value, layout)
    lines, depths = [], [0]
    for row in range(starts[tree], starts[tree + 1]):
        depth = depths.pop()
        column = int(value[row, 0])
        if column >= 0:
            if names is None:
                line = f"x{column} <= {value[row, 1]:.4g}"
            elif not layout.mixed:
                line = f"{names[column]} <= {value[row, 1]:.4g}"
            else:
                line = rule_text(column, value[row, 1], names, levels)
            lines.append(f"{INDENT * depth}{line}")
            depths += [depth + 1, depth + 1]
        else:
            leaf = ", ".join(f"{v:.4g}" for v in value[row, 1 : 1 + layout.n_values])
            lines.append(f"{INDENT * depth}leaf {leaf}")
    return "\n".join(lines)


def rule_text(code: int, cut: float, names: Sequence[str], levels=None) -> str:
    """Condition of the rows that a rule of `mixed` sends left."""
    way, column = divmod(code, len(names))
    name, missing_left = names[column], bool(way & LEFT)
    known = None if levels is None else levels[column]
    if way < SET:
        if abs(cut) == EVERY:
            return f"{name} is {'missing' if missing_left else 'present'}"
        return f"{name} <= {cut:.4g}" + " or missing" * missing_left
    inside = [k for k in range(MOST_LEVELS) if int(cut) >> k & 1]
    if missing_left and not inside:
        return f"{name} is missing"
    if known is not None and len(inside) == len(known) and not missing_left:
        return f"{name} is present"
    shown = ", ".join(str(k if known is None else known[k]) for k in inside)
    return f"{name} in {{{shown}}}" + " or missing" * missing_left


def forest_text(
    value: np.ndarray,
    layout: Layout,
    names: Sequence[str] | None = None,
    levels: Sequence[Sequence | None] | None = None,
) -> str:
    """Text of all trees, each under a line with its number; see `tree_text`."""
    return "\n".join(
        f"tree {tree}\n{tree_text(value, layout, tree, names, levels)}" for tree in range(layout.m)
    )
