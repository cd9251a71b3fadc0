"""Columns of the splits of a forest, and pairs of columns on a common path."""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.value.fields import LEAF


@njit(cache=True, nogil=True)
def count_choices(value, p, m, counts, pairs):
    """Count the split nodes of an encoded forest.

    Parameters
    ----------
    counts : (p,) int64
        Written: split nodes on each column.
    pairs : (p, p) or (0, 0) int64
        Written, unless empty: split nodes on the second column below one on the first.
    """
    counts[:] = 0
    pairs[:] = 0
    above = np.empty(value.shape[0], dtype=np.int64)
    left = np.empty(value.shape[0], dtype=np.bool_)
    row = 0
    for _ in range(m):
        height = 0
        while True:
            if value[row, 0] != LEAF:
                column = int(value[row, 0]) % p
                counts[column] += 1
                if pairs.size:
                    for h in range(height):
                        pairs[above[h], column] += 1
                above[height], left[height] = column, True
                height += 1
                row += 1
                continue
            row += 1
            while height > 0 and not left[height - 1]:
                height -= 1
            if height == 0:
                break
            left[height - 1] = False  # in preorder the right child follows the left subtree
