"""Rules that separate blocks of rows without cutting any: their probability, and a draw.

A node contains some blocks. A rule of the prior (`rules`) cuts a block if it sends rows of the
block both ways. In a given column, the rules that cut no block are

- cuts in a gap between blocks. If the node has missing cells, their side is free as long as no
  block has both missing and present cells; otherwise it is the side of such blocks, which stay
  together;
- sets of levels that keep the levels of a block together, and therefore those of blocks that share
  a level; missing cells count as one more level, whose side is free if no block has it together
  with another;
- missing against present rows, if no block has both.

``p_separates`` is the probability of these under the prior given the column, ``draw_separating``
draws from the prior given that the rule is one of them. So ``log_set_rule`` less the log of the
chance is the density of the draw.
"""

from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int64

from pymc_trees.core.columns.design import Design, draw_cut
from pymc_trees.core.columns.mixed import (
    DESIGN,
    EVERY,
    LEFT,
    SET,
    MixedDesign,
    present_range,
)
from pymc_trees.core.columns.row_set import (
    RowSet,
    any_missing,
    list_rows,
    set_levels,
    set_numbers,
    set_range,
)
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register
from pymc_trees.core.compile.handle import GENERATOR
from pymc_trees.core.compile.lanes import popcount
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.random import pick

# ----------- Gaps between blocks of rows in a numeric column: a cut there sends each block one way


@njit(cache=True)
def line_up(low, blocks, start, stop):
    """Write blocks with present cells to ``line``, by smallest cell; return their number."""
    order, line = blocks.order, blocks.line
    n = 0
    for k in range(start, stop):
        block, place = order[k], n
        if low[block] == np.inf:
            continue
        while place > 0 and low[line[place - 1]] > low[block]:
            line[place] = line[place - 1]
            place -= 1
        line[place] = block
        n += 1
    return n


@njit(cache=True)
def extent_of(low, high, line, n):
    """Range of the cells of the first n blocks of the line."""
    largest = -np.inf
    for k in range(n):
        largest = max(largest, high[line[k]])
    return largest - low[line[0]] if n > 0 else 0.0


@njit(cache=True)
def find_gap(low, high, line, n, held, point):
    """Total width of the gaps between n sorted blocks, up to and including the gap at a point.

    Parameters
    ----------
    held : tuple of float
        Smallest and largest cell of blocks that stay together: there is no gap between them.
    point : float
        inf for the width of all.

    Returns
    -------
    total, begin, end : float
        Total width, and the last gap that was reached.
    """
    total, begin, end = 0.0, 0.0, 0.0
    reach = high[line[0]] if n > 0 else 0.0
    for k in range(1, n):
        after = low[line[k]]
        if after > reach and not (held[0] <= reach and after <= held[1]):
            total += after - reach
            begin, end = reach, after
            if point < total:
                break
        reach = max(reach, high[line[k]])
    return total, begin, end


# --------- Sets of levels that keep blocks of rows together; missing cells count as one more level


MISSING_LEVEL = np.int64(1) << np.int64(62)
"""Bit of the missing cells in a set of levels."""


@njit(cache=True)
def join_levels(levels, missing, blocks, start, stop):
    """Write the sets of levels that stay together to ``joint``; return their number."""
    order, joint = blocks.order, blocks.joint
    n = 0
    for k in range(start, stop):
        block, kept = order[k], 0
        found = levels[block] | (MISSING_LEVEL if missing[block] else np.int64(0))
        for q in range(n):
            if joint[q] & found != 0:
                found |= joint[q]
            else:
                joint[kept] = joint[q]
                kept += 1
        joint[kept] = found
        n = kept + 1
    return n


@njit(cache=True)
def is_single(levels):
    """Whether a set has exactly one level; missing cells do not count."""
    return popcount(np.uint64(levels & ~MISSING_LEVEL)) == 1


@njit(cache=True)
def chances_of_levels(kind, joint, n_joint):
    """Of missing rows apart, and of a set of levels elsewhere: `p_separates`; the missing's set.

    ``joint[:n_joint]`` is from `join_levels`; the missing cells' set is 0 where none is missing.
    """
    present, of_missing, n_single = np.int64(0), np.int64(0), 0
    for q in range(n_joint):
        present |= joint[q] & ~MISSING_LEVEL
        n_single += is_single(joint[q])
        if joint[q] & MISSING_LEVEL != 0:
            of_missing = joint[q]
    n_present = popcount(np.uint64(present))
    is_alone = of_missing == MISSING_LEVEL
    apart, elsewhere = 0.0, 1.0
    if of_missing != 0:
        apart = 1.0 if n_present == 1 else 1.0 / (1.0 + n_present)
        elsewhere = 1.0 - apart
        if n_present == 0 or not is_alone:
            apart = 0.0
        if not is_alone:
            elsewhere *= 0.5
    if n_present < 2:
        elsewhere = 0.0
    elif kind < 0:
        elsewhere *= n_single / n_present
    else:
        elsewhere *= (2.0 ** (n_joint - int(is_alone)) - 2.0) / (2.0**n_present - 2.0)
    return apart, elsewhere, of_missing


@njit(cache=True)
def draw_levels_uncut(rng, kind, joint, n_joint):
    """`draw_separating` of a column of levels: side of missing rows, and set that goes left."""
    apart, elsewhere, of_missing = chances_of_levels(kind, joint, n_joint)
    every = (np.int64(1) << abs(kind)) - 1
    side = int(rng.random() < 0.5)
    if rng.random() * (apart + elsewhere) < apart:
        return side, 0.0 if side == 1 else float(every)
    chosen = np.int64(0)
    if kind < 0:
        n_single = 0
        for q in range(n_joint):
            n_single += is_single(joint[q])
        target = pick(rng, n_single)
        for q in range(n_joint):
            if is_single(joint[q]):
                if target == 0:
                    chosen = joint[q]
                target -= 1
    else:
        present = np.int64(0)
        for q in range(n_joint):
            present |= joint[q] & ~MISSING_LEVEL
        inside = np.int64(0)
        while inside == 0 or inside == present:
            chosen = np.int64(0)
            for q in range(n_joint):
                if rng.random() < 0.5:
                    chosen |= joint[q]
            inside = chosen & present
        for level in range(kind):
            if (present >> level) & 1 == 0 and rng.random() < 0.5:
                chosen |= np.int64(1) << level
    if of_missing != 0 and of_missing != MISSING_LEVEL:
        side = int(chosen & MISSING_LEVEL != 0)
    return side, float(chosen & ~MISSING_LEVEL)


# --------------------------------------------------------------------------------------------------


@by_pointer
class Blocks(NamedTuple):
    """Extents and levels of b blocks of rows in p columns, and the blocks in each node."""

    low: np.ndarray
    """(p, b) float64: smallest present cell of a column of numbers; inf where none is."""
    high: np.ndarray
    """(p, b) float64: largest one, or -inf."""
    levels: np.ndarray
    """(p, b) int64: set of the levels present."""
    missing: np.ndarray
    """(p, b) bool: whether a cell is missing."""
    order: np.ndarray
    """(b,) int64: the blocks; a node holds a stretch of them, ``order[start:stop]``."""
    line: np.ndarray
    """(b,) int64, overwritten: blocks of a node by their smallest cell."""
    joint: np.ndarray
    """(64,) int64, overwritten: sets of levels that stay together."""


@njit(cache=True)
def make_blocks(n_columns, n_blocks):
    """Arrays for a number of blocks, in the order of their numbers."""
    return Blocks(
        np.full((n_columns, n_blocks), np.inf),
        np.full((n_columns, n_blocks), -np.inf),
        np.zeros((n_columns, n_blocks), dtype=np.int64),
        np.zeros((n_columns, n_blocks), dtype=np.bool_),
        np.arange(n_blocks),
        np.zeros(n_blocks, dtype=np.int64),
        np.zeros(64, dtype=np.int64),
    )


@generic("design", args=(DESIGN, RowSet, Blocks, int64), result=None)
def note_block(design, rows, blocks, block):
    """Store the extents and levels of a block, given its rows as a `RowSet`."""


@generic("design", args=(DESIGN, int64, Blocks, int64, int64, RowSet), result=(float64, float64))
def p_separates(design, column, blocks, start, stop, rows):
    """Prior probability that a rule of a column cuts no block, and the column's extent.

    0 where it does not vary in the node, whose `RowSet` is ``rows``.
    """


@generic(
    "design", args=(GENERATOR, DESIGN, int64, Blocks, int64, int64, RowSet), result=(int64, float64)
)
def draw_separating(rng, design, column, blocks, start, stop, rows):
    """Draw a rule of a column from the prior given that it cuts no block; some rule must exist."""


@generic("design", args=(DESIGN, int64, float64, Blocks, int64), result=boolean)
def goes_left(design, code, cut, blocks, block):
    """Whether a rule that does not cut a block sends it left."""


@njit(cache=True)
def part_blocks(design, code, cut, blocks, start, stop):
    """Move the blocks that a rule sends left to the front; return where the others start."""
    order, line = blocks.order, blocks.line
    middle, n_right = start, 0
    for k in range(start, stop):
        block = order[k]
        if goes_left(design, code, cut, blocks, block):
            order[middle] = block
            middle += 1
        else:
            line[n_right] = block
            n_right += 1
    for k in range(n_right):
        order[middle + k] = line[k]
    return middle


@njit(cache=True)
def _note_plain(design, rows, blocks, block):
    for j in range(design.columns.shape[0]):
        if design.varies[j]:
            blocks.low[j, block], blocks.high[j, block] = set_range(design, j, rows)


@njit(cache=True)
def _chance_plain(design, column, blocks, start, stop, rows):
    low, high, line = blocks.low[column], blocks.high[column], blocks.line
    n = line_up(low, blocks, start, stop)
    extent = extent_of(low, high, line, n)
    if extent == 0.0:
        return 0.0, 0.0
    return find_gap(low, high, line, n, (np.inf, -np.inf), np.inf)[0] / extent, extent


@njit(cache=True)
def _draw_plain(rng, design, column, blocks, start, stop, rows):
    low, high, line, held = blocks.low[column], blocks.high[column], blocks.line, (np.inf, -np.inf)
    n = line_up(low, blocks, start, stop)
    total = find_gap(low, high, line, n, held, np.inf)[0]
    _, begin, end = find_gap(low, high, line, n, held, rng.random() * total)
    return column, draw_cut(rng, design, begin, end)


@njit(cache=True)
def _plain_goes_left(design, code, cut, blocks, block):
    return blocks.low[code, block] <= cut


@njit(cache=True)
def _note_mixed(design, rows, blocks, block):
    for j in range(design.columns.shape[0]):
        if not design.varies[j]:
            continue
        blocks.missing[j, block] = any_missing(design, j, rows)
        if design.kinds[j] != 0:
            blocks.levels[j, block] = set_levels(design, j, rows)[0]
        elif blocks.missing[j, block]:
            _, distinct, low, high = present_range(design, j, rows.index.listed, 0, list_rows(rows))
            if distinct > 0:
                blocks.low[j, block], blocks.high[j, block] = low, high
        else:
            blocks.low[j, block], blocks.high[j, block] = set_range(design, j, rows)


@njit(cache=True)
def chances_of_numbers(design, column, blocks, start, stop, rows):
    """Of missing rows apart, and of a cut elsewhere: `p_separates`; the held cells, the extent."""
    low, high, missing = blocks.low[column], blocks.high[column], blocks.missing[column]
    order, line = blocks.order, blocks.line
    n = line_up(low, blocks, start, stop)
    extent = extent_of(low, high, line, n)
    least, largest, is_gappy = np.inf, -np.inf, False
    for k in range(start, stop):
        block = order[k]
        if missing[block]:
            is_gappy = True
            least, largest = min(least, low[block]), max(largest, high[block])
    apart, elsewhere = 0.0, 1.0
    if is_gappy:
        distinct = set_numbers(design, column, rows)[1]
        apart = 1.0 if distinct == 1 else 1.0 / (1.0 + distinct)
        elsewhere = 1.0 - apart
        if n == 0 or least <= largest:
            apart = 0.0
        if least <= largest:
            elsewhere *= 0.5
    if extent > 0.0:
        elsewhere *= find_gap(low, high, line, n, (least, largest), np.inf)[0] / extent
    else:
        elsewhere = 0.0
    return apart, elsewhere, (least, largest), extent


@njit(cache=True)
def draw_number_uncut(rng, design, column, blocks, start, stop, rows):
    """`draw_separating` of a column of numbers: the side of missing rows, and the cut."""
    apart, elsewhere, held, _ = chances_of_numbers(design, column, blocks, start, stop, rows)
    side = int(rng.random() < 0.5)
    if rng.random() * (apart + elsewhere) < apart:
        return side, -EVERY if side == 1 else EVERY
    low, high, line = blocks.low[column], blocks.high[column], blocks.line
    n = line_up(low, blocks, start, stop)
    total = find_gap(low, high, line, n, held, np.inf)[0]
    _, begin, end = find_gap(low, high, line, n, held, rng.random() * total)
    if held[0] <= held[1]:
        side = int(held[1] <= begin)
    return side, draw_cut(rng, design, begin, end)


@njit(cache=True)
def _chance_mixed(design, column, blocks, start, stop, rows):
    kind = design.kinds[column]
    if kind == 0:
        found = chances_of_numbers(design, column, blocks, start, stop, rows)
        return found[0] + found[1], found[3]
    levels, missing = blocks.levels[column], blocks.missing[column]
    n_joint = join_levels(levels, missing, blocks, start, stop)
    apart, elsewhere, _ = chances_of_levels(kind, blocks.joint, n_joint)
    return apart + elsewhere, 0.0


@njit(cache=True)
def _draw_mixed(rng, design, column, blocks, start, stop, rows):
    p, kind = design.columns.shape[0], design.kinds[column]
    if kind == 0:
        side, cut = draw_number_uncut(rng, design, column, blocks, start, stop, rows)
        return column + p * side, cut
    levels, missing = blocks.levels[column], blocks.missing[column]
    n_joint = join_levels(levels, missing, blocks, start, stop)
    side, cut = draw_levels_uncut(rng, kind, blocks.joint, n_joint)
    return column + p * (SET + side), cut


@njit(cache=True)
def _mixed_goes_left(design, code, cut, blocks, block):
    p = design.columns.shape[0]
    column, way = code % p, code // p
    if way >= SET:
        if blocks.levels[column, block] != 0:
            return np.int64(cut) & blocks.levels[column, block] != 0
    elif blocks.low[column, block] != np.inf:
        return blocks.low[column, block] <= cut
    return way & LEFT != 0


register(
    Design,
    note_block=_note_plain,
    p_separates=_chance_plain,
    draw_separating=_draw_plain,
    goes_left=_plain_goes_left,
)
register(
    MixedDesign,
    note_block=_note_mixed,
    p_separates=_chance_mixed,
    draw_separating=_draw_mixed,
    goes_left=_mixed_goes_left,
)
