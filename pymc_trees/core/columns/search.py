"""Numbers among the cuts of a column.

The range of the cuts is divided into `N_PARTS` of one width. The part of a number leaves few cuts
to search, whatever their number; a binary search among all of them waits for memory at each step.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit

N_PARTS = 1024


@njit(cache=True)
def parts_of(cuts):
    """Scale, offset and the first cuts of the parts of increasing finite cuts.

    x is in part ``scale * x - offset``, rounded down, and kept within -1 and `N_PARTS`. Of each
    part, (N_PARTS + 3,) int64 from -1 on, the number of cuts in lower ones.
    """
    width = cuts[-1] - cuts[0] if cuts.size > 0 else 0.0
    scale = N_PARTS / width if width > 0.0 else 0.0
    scale = scale if scale < np.inf else 0.0
    offset = scale * cuts[0] if cuts.size > 0 else 0.0
    first, k = np.empty(N_PARTS + 3, dtype=np.int64), 0
    for part in range(first.size):
        while k < cuts.size and _part(scale, offset, cuts[k]) < part:
            k += 1
        first[part] = k
    return scale, offset, first


@njit(cache=True, inline="always")
def _part(scale, offset, x):
    """Part of a number, from 0 on; it does not decrease with the number."""
    place = scale * x - offset + 1.0
    if place < 0.0:
        return 0
    return np.int64(place) if place < N_PARTS + 1.0 else N_PARTS + 1


@njit(cache=True, inline="always")
def n_below(cuts, scale, offset, first, x):
    """Number of cuts below a finite number; the others are those of `parts_of`."""
    part = _part(scale, offset, x)
    low, high = first[part], first[part + 1]
    while low < high:
        middle = (low + high) >> 1
        if cuts[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def write_codes(cuts, cells, codes):
    """Write the code of each finite cell of a column on a grid: the number of cuts below it."""
    scale, offset, first = parts_of(cuts)
    for i in range(cells.size):
        codes[i] = n_below(cuts, scale, offset, first, cells[i])
