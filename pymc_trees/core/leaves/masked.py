"""Sums over a set of rows, by the faster of two methods."""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.lanes import lowest_bit, masked_sum

_ONE = np.uint64(1)
FEW = 3
"""Rows per word up to which rows are visited one by one."""


@njit(cache=True)
def sum_of_bits(words, x):
    """Sum of x over a set of rows, one by one."""
    total = 0.0
    for w in range(words.size):
        word = words[w]
        while word != np.uint64(0):
            total += x[(w << 6) + lowest_bit(word)]
            word &= word - _ONE
    return total


@njit(cache=True)
def set_sum(words, n, x):
    """Sum of x over a set of n rows: one by one if they are few."""
    return masked_sum(words, x) if n > FEW * words.size else sum_of_bits(words, x)


@njit(cache=True)
def change_of_sum(words, old, x):
    """Sum of x over a set of rows minus that over another, from the rows in which they differ."""
    total = 0.0
    for w in range(words.size):
        word = words[w] ^ old[w]
        while word != np.uint64(0):
            i = (w << 6) + lowest_bit(word)
            total += x[i] if words[w] & (word ^ (word - _ONE)) & word else -x[i]
            word &= word - _ONE
    return total
