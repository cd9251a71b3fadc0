"""Sums over rows kept as bits, and a number added to some rows.

All rows are read, 64 at a time, and those that are not in the set count as 0: without branches, the
compiler makes them vector instructions. What is left after the last 64 is taken bit by bit. Only
the order of additions depends on the processor.
"""

import numpy as np

from pymc_trees.core.compile.bits import lowest_bit
from pymc_trees.core.compile.cache import njit

_ONE = np.uint64(1)
_ANY_ORDER = {"reassoc", "nsz", "contract"}


@njit(cache=True)
def sum_of_bits(words, first, x):
    """Sum of x over the rows of a set from word ``first`` on, one by one."""
    total = 0.0
    for w in range(first, words.size):
        word = words[w]
        while word != np.uint64(0):
            total += x[(w << 6) + lowest_bit(word)]
            word &= word - _ONE
    return total


@njit(cache=True, fastmath=_ANY_ORDER)
def masked_sum(words, x):
    """Sum of x over a set of rows."""
    total = 0.0
    whole = x.size >> 6
    for w in range(whole):
        word, base = words[w], w << 6
        for bit in range(64):
            total += x[base + bit] if (word >> np.uint64(bit)) & _ONE else 0.0
    return total + sum_of_bits(words, whole, x)


@njit(cache=True)
def set_sum(words, n, x):
    """Sum of x over a set of n rows: one by one where they are few."""
    return masked_sum(words, x) if n > 4 * words.size else sum_of_bits(words, 0, x)


@njit(cache=True)
def change_of_sum(words, old, x):
    """Sum of x over a set of rows less that over another, by the rows of one of them."""
    total = 0.0
    for w in range(words.size):
        word = words[w] ^ old[w]
        while word != np.uint64(0):
            i = (w << 6) + lowest_bit(word)
            total += x[i] if words[w] & (word ^ (word - _ONE)) & word else -x[i]
            word &= word - _ONE
    return total


@njit(cache=True, fastmath=_ANY_ORDER)
def masked_product_sum(words, w, x):
    """Sum of w x over a set of rows."""
    total = 0.0
    whole = x.size >> 6
    for k in range(whole):
        word, base = words[k], k << 6
        for bit in range(64):
            i = base + bit
            total += w[i] * x[i] if (word >> np.uint64(bit)) & _ONE else 0.0
    for k in range(whole, words.size):
        word = words[k]
        while word != np.uint64(0):
            i = (k << 6) + lowest_bit(word)
            total += w[i] * x[i]
            word &= word - _ONE
    return total


@njit(cache=True)
def masked_add(words, x, value):
    """Add a number to x at the rows of a set."""
    whole = x.size >> 6
    for w in range(whole):
        word, base = words[w], w << 6
        for bit in range(64):
            x[base + bit] += value if (word >> np.uint64(bit)) & _ONE else 0.0
    for w in range(whole, words.size):
        word = words[w]
        while word != np.uint64(0):
            x[(w << 6) + lowest_bit(word)] += value
            word &= word - _ONE


@njit(cache=True, fastmath=_ANY_ORDER)
def masked_add_and_sum(words, x, value):
    """`masked_add`, and the sum of the new x over the set."""
    total = 0.0
    whole = x.size >> 6
    for w in range(whole):
        word, base = words[w], w << 6
        for bit in range(64):
            inside = (word >> np.uint64(bit)) & _ONE
            x_i = x[base + bit] + (value if inside else 0.0)
            x[base + bit] = x_i
            total += x_i if inside else 0.0
    for w in range(whole, words.size):
        word = words[w]
        while word != np.uint64(0):
            i = (w << 6) + lowest_bit(word)
            x[i] += value
            total += x[i]
            word &= word - _ONE
    return total
