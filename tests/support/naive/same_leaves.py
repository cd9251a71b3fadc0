"""Trees with given leaves drawn from the root, by the definition (`core.moves.restructure`)."""

import math
from typing import NamedTuple

from support.naive import slow


class Piece(NamedTuple):
    """Rules of a column that send every row of a node the same way, and no other rule does."""

    code: int
    low: float
    high: float
    """The cuts from the first up to the second; that one alone where both are the same."""
    mass: float
    """Their prior probability given node and column, times that of the column."""


def pieces_of(cells, rows, weights, column, is_grid):
    """All rules of a column in a node with prior mass."""
    p, kinds = cells.shape[1], slow.kinds_of(cells)
    present = sorted({float(cells[i, column]) for i in rows} - {slow.MISSING})
    gaps = list(zip(present, present[1:], strict=False))
    if is_grid:
        gaps = [(c, c + 1) for low, high in gaps for c in range(int(low), int(high))]
    if kinds is None:
        candidates = [(column, low, high) for low, high in gaps]
    elif kinds[column] == 0:
        candidates = [(column + p * side, low, high) for low, high in gaps for side in (0, 1)]
        candidates += [(column, slow.EVERY, slow.EVERY), (column + p, -slow.EVERY, -slow.EVERY)]
    else:
        sets = [float(levels) for levels in range(2 ** abs(kinds[column]))]
        candidates = [(column + p * way, cut, cut) for cut in sets for way in (2, 3)]
    out = []
    for code, low, high in candidates:
        log_p = slow.log_rule(cells, rows, weights, code, low)
        if log_p > -math.inf:
            out.append(Piece(code, low, high, math.exp(log_p) * ((high - low) or 1.0)))
    return out


def cuts_none(cells, piece, leaves):
    """Whether a rule sends every leaf one way."""
    return all(
        len({bool(slow.goes_left(cells, i, piece.code, piece.low)) for i in leaf}) == 1
        for leaf in leaves
    )


def uncut(cells, rows, weights, leaves, is_grid):
    """Rules of a node that cut none of its leaves."""
    return [
        piece
        for column in slow.varying(cells, rows, weights)
        for piece in pieces_of(cells, rows, weights, column, is_grid)
        if cuts_none(cells, piece, leaves)
    ]


def log_density(root, cells, weights, is_grid):
    """Log density with which a tree is drawn among those with its leaves."""
    total = 0.0
    for node, _, rows, _ in slow.visits(root, cells):
        if isinstance(node, slow.Split):
            leaves = [leaf for leaf in slow.leaves_of(root, cells) if set(leaf) <= set(rows)]
            mass = math.fsum(piece.mass for piece in uncut(cells, rows, weights, leaves, is_grid))
            total += slow.log_rule(cells, rows, weights, node.column, node.cut) - math.log(mass)
    return total
