"""Gaps between blocks of rows in a numeric column: a cut there sends each block one way."""

import numpy as np

from pymc_trees.core.compile.cache import njit


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
