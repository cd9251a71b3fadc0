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

``p_separates`` is the probability of these rules under the prior given the column, and
``draw_separating`` draws from the prior given that the rule is one of them. The log density of the
draw is therefore ``log_set_rule`` minus the log of ``p_separates``.
"""

from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int64

from pymc_trees.core.columns.cells import LEFT, MAX_CUT, SET
from pymc_trees.core.columns.design import Design, draw_cut
from pymc_trees.core.columns.mixed import DESIGN, MixedDesign, present_range
from pymc_trees.core.columns.row_set import (
    RowSet,
    any_missing,
    levels_in_set,
    list_rows,
    numbers_in_set,
    range_in_set,
)
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register
from pymc_trees.core.compile.handle import GENERATOR
from pymc_trees.core.compile.lanes import popcount
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.random import pick

# ----------- Gaps between blocks of rows in a numeric column: a cut there sends each block one way


@njit(cache=True)
def sort_blocks(low, blocks, start, stop):
    """Write blocks with present cells to ``by_low``, by smallest cell; return their number."""
    order, by_low = blocks.order, blocks.by_low
    n = 0
    for k in range(start, stop):
        block, position = order[k], n
        if low[block] == np.inf:
            continue
        while position > 0 and low[by_low[position - 1]] > low[block]:
            by_low[position] = by_low[position - 1]
            position -= 1
        by_low[position] = block
        n += 1
    return n


@njit(cache=True)
def extent_of(low, high, by_low, n):
    """Range of the cells of n sorted blocks."""
    merged_high = -np.inf
    for k in range(n):
        merged_high = max(merged_high, high[by_low[k]])
    return merged_high - low[by_low[0]] if n > 0 else 0.0


@njit(cache=True)
def find_gap(low, high, by_low, n, merged, point):
    """Total width of the gaps between n sorted blocks, up to and including the gap at a point.

    Parameters
    ----------
    merged : tuple of float
        Smallest and largest cell of blocks that stay together: no gap lies between them.
    point : float
        inf for the width of all.

    Returns
    -------
    total, begin, end : float
        Total width, and the last gap that was reached.
    """
    total, begin, end = 0.0, 0.0, 0.0
    reach = high[by_low[0]] if n > 0 else 0.0
    for k in range(1, n):
        after = low[by_low[k]]
        if after > reach and not (merged[0] <= reach and after <= merged[1]):
            total += after - reach
            begin, end = reach, after
            if point < total:
                break
        reach = max(reach, high[by_low[k]])
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
        block, n_kept = order[k], 0
        joined = levels[block] | (MISSING_LEVEL if missing[block] else np.int64(0))
        for q in range(n):
            if joint[q] & joined != 0:
                joined |= joint[q]
            else:
                joint[n_kept] = joint[q]
                n_kept += 1
        joint[n_kept] = joined
        n = n_kept + 1
    return n


@njit(cache=True)
def is_single(levels):
    """Whether a set has exactly one level; missing cells do not count."""
    return popcount(np.uint64(levels & ~MISSING_LEVEL)) == 1


@njit(cache=True)
def level_set_probabilities(kind, joint, n_joint):
    """Probabilities of both kinds of rule that cut no block, and the set joined to missing cells.

    The rules are missing against present, and any other; their sum is `p_separates`.
    ``joint[:n_joint]`` is from `join_levels`; the set is 0 where no cell is missing.
    """
    present, missing_set, n_single = np.int64(0), np.int64(0), 0
    for q in range(n_joint):
        present |= joint[q] & ~MISSING_LEVEL
        n_single += is_single(joint[q])
        if joint[q] & MISSING_LEVEL != 0:
            missing_set = joint[q]
    n_present = popcount(np.uint64(present))
    missing_is_alone = missing_set == MISSING_LEVEL
    p_missing_split, p_other = 0.0, 1.0
    if missing_set != 0:
        p_missing_split = 1.0 if n_present == 1 else 1.0 / (1.0 + n_present)
        p_other = 1.0 - p_missing_split
        if n_present == 0 or not missing_is_alone:
            p_missing_split = 0.0
        if not missing_is_alone:
            p_other *= 0.5
    if n_present < 2:
        p_other = 0.0
    elif kind < 0:
        p_other *= n_single / n_present
    else:
        p_other *= (2.0 ** (n_joint - int(missing_is_alone)) - 2.0) / (2.0**n_present - 2.0)
    return p_missing_split, p_other, missing_set


@njit(cache=True)
def draw_separating_levels(rng, kind, joint, n_joint):
    """`draw_separating` of a column of levels: side of missing rows, and set that goes left."""
    p_missing_split, p_other, missing_set = level_set_probabilities(kind, joint, n_joint)
    all_levels = (np.int64(1) << abs(kind)) - 1
    side = int(rng.random() < 0.5)
    if rng.random() * (p_missing_split + p_other) < p_missing_split:
        return side, 0.0 if side == 1 else float(all_levels)
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
    if missing_set != 0 and missing_set != MISSING_LEVEL:
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
    """(b,) int64: the blocks; a node has the slice ``order[start:stop]``."""
    by_low: np.ndarray
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
def record_block(design, rows, blocks, block):
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
def partition_blocks(design, code, cut, blocks, start, stop):
    """Move the blocks that a rule sends left to the front; return where the others start."""
    order, by_low = blocks.order, blocks.by_low
    middle, n_right = start, 0
    for k in range(start, stop):
        block = order[k]
        if goes_left(design, code, cut, blocks, block):
            order[middle] = block
            middle += 1
        else:
            by_low[n_right] = block
            n_right += 1
    for k in range(n_right):
        order[middle + k] = by_low[k]
    return middle


@njit(cache=True)
def _record_plain(design, rows, blocks, block):
    for j in range(design.columns.shape[0]):
        if design.varies[j]:
            blocks.low[j, block], blocks.high[j, block] = range_in_set(design, j, rows)


@njit(cache=True)
def _p_separates_plain(design, column, blocks, start, stop, rows):
    low, high, by_low = blocks.low[column], blocks.high[column], blocks.by_low
    n = sort_blocks(low, blocks, start, stop)
    extent = extent_of(low, high, by_low, n)
    if extent == 0.0:
        return 0.0, 0.0
    return find_gap(low, high, by_low, n, (np.inf, -np.inf), np.inf)[0] / extent, extent


@njit(cache=True)
def _draw_plain(rng, design, column, blocks, start, stop, rows):
    low, high, by_low, merged = (
        blocks.low[column],
        blocks.high[column],
        blocks.by_low,
        (np.inf, -np.inf),
    )
    n = sort_blocks(low, blocks, start, stop)
    total = find_gap(low, high, by_low, n, merged, np.inf)[0]
    _, begin, end = find_gap(low, high, by_low, n, merged, rng.random() * total)
    return column, draw_cut(rng, design, begin, end)


@njit(cache=True)
def _plain_goes_left(design, code, cut, blocks, block):
    return blocks.low[code, block] <= cut


@njit(cache=True)
def _record_mixed(design, rows, blocks, block):
    for j in range(design.columns.shape[0]):
        if not design.varies[j]:
            continue
        blocks.missing[j, block] = any_missing(design, j, rows)
        if design.kinds[j] != 0:
            blocks.levels[j, block] = levels_in_set(design, j, rows)[0]
        elif blocks.missing[j, block]:
            _, distinct, low, high = present_range(
                design, j, rows.index.row_list, 0, list_rows(rows)
            )
            if distinct > 0:
                blocks.low[j, block], blocks.high[j, block] = low, high
        else:
            blocks.low[j, block], blocks.high[j, block] = range_in_set(design, j, rows)


@njit(cache=True)
def cut_probabilities(design, column, blocks, start, stop, rows):
    """Probabilities of the two kinds of rule that cut no block; the merged cells, and the extent.

    As `level_set_probabilities`, for numbers. No cut falls between the merged cells.
    """
    low, high, missing = blocks.low[column], blocks.high[column], blocks.missing[column]
    order, by_low = blocks.order, blocks.by_low
    n = sort_blocks(low, blocks, start, stop)
    extent = extent_of(low, high, by_low, n)
    merged_low, merged_high, has_missing = np.inf, -np.inf, False
    for k in range(start, stop):
        block = order[k]
        if missing[block]:
            has_missing = True
            merged_low, merged_high = min(merged_low, low[block]), max(merged_high, high[block])
    p_missing_split, p_other = 0.0, 1.0
    if has_missing:
        distinct = numbers_in_set(design, column, rows)[1]
        p_missing_split = 1.0 if distinct == 1 else 1.0 / (1.0 + distinct)
        p_other = 1.0 - p_missing_split
        if n == 0 or merged_low <= merged_high:
            p_missing_split = 0.0
        if merged_low <= merged_high:
            p_other *= 0.5
    if extent > 0.0:
        p_other *= find_gap(low, high, by_low, n, (merged_low, merged_high), np.inf)[0] / extent
    else:
        p_other = 0.0
    return p_missing_split, p_other, (merged_low, merged_high), extent


@njit(cache=True)
def draw_separating_cut(rng, design, column, blocks, start, stop, rows):
    """`draw_separating` of a column of numbers: the side of missing rows, and the cut."""
    p_missing_split, p_other, merged, _ = cut_probabilities(
        design, column, blocks, start, stop, rows
    )
    side = int(rng.random() < 0.5)
    if rng.random() * (p_missing_split + p_other) < p_missing_split:
        return side, -MAX_CUT if side == 1 else MAX_CUT
    low, high, by_low = blocks.low[column], blocks.high[column], blocks.by_low
    n = sort_blocks(low, blocks, start, stop)
    total = find_gap(low, high, by_low, n, merged, np.inf)[0]
    _, begin, end = find_gap(low, high, by_low, n, merged, rng.random() * total)
    if merged[0] <= merged[1]:
        side = int(merged[1] <= begin)
    return side, draw_cut(rng, design, begin, end)


@njit(cache=True)
def _p_separates_mixed(design, column, blocks, start, stop, rows):
    kind = design.kinds[column]
    if kind == 0:
        p_split, p_other, _, extent = cut_probabilities(design, column, blocks, start, stop, rows)
        return p_split + p_other, extent
    levels, missing = blocks.levels[column], blocks.missing[column]
    n_joint = join_levels(levels, missing, blocks, start, stop)
    p_split, p_other, _ = level_set_probabilities(kind, blocks.joint, n_joint)
    return p_split + p_other, 0.0


@njit(cache=True)
def _draw_mixed(rng, design, column, blocks, start, stop, rows):
    p, kind = design.columns.shape[0], design.kinds[column]
    if kind == 0:
        side, cut = draw_separating_cut(rng, design, column, blocks, start, stop, rows)
        return column + p * side, cut
    levels, missing = blocks.levels[column], blocks.missing[column]
    n_joint = join_levels(levels, missing, blocks, start, stop)
    side, cut = draw_separating_levels(rng, kind, blocks.joint, n_joint)
    return column + p * (SET + side), cut


@njit(cache=True)
def _mixed_goes_left(design, code, cut, blocks, block):
    p = design.columns.shape[0]
    column, rule_kind = code % p, code // p
    if rule_kind >= SET:
        if blocks.levels[column, block] != 0:
            return np.int64(cut) & blocks.levels[column, block] != 0
    elif blocks.low[column, block] != np.inf:
        return blocks.low[column, block] <= cut
    return rule_kind & LEFT != 0


register(
    Design,
    record_block=_record_plain,
    p_separates=_p_separates_plain,
    draw_separating=_draw_plain,
    goes_left=_plain_goes_left,
)
register(
    MixedDesign,
    record_block=_record_mixed,
    p_separates=_p_separates_mixed,
    draw_separating=_draw_mixed,
    goes_left=_mixed_goes_left,
)
