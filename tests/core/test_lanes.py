"""Numbers at the rows of a set: bit for bit those of the order of additions written down."""

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from pymc_trees.core.columns.row_set import words_of
from pymc_trees.core.compile import lanes

CASES = pytest.mark.parametrize("n", [1, 5, 8, 63, 64, 65, 100, 128, 191, 1000, 1024])


@njit
def total(words, x):
    return lanes.masked_sum(words, x)


@njit
def product(words, x, w):
    return lanes.masked_product_sum(words, x, w)


def in_order(x, inside):
    """Four chains of eight lanes, by the place of a byte in its word, or the first at the end."""
    n, chains, single = len(x), np.zeros((4, 8)), 0.0
    for k in range(n // 8):
        chain = k % 8 % 4 if k < n // 64 * 8 else 0
        for lane in range(8):
            if inside[8 * k + lane]:
                chains[chain, lane] += x[8 * k + lane]
    for i in range(n - n % 8, n):
        if inside[i]:
            single += x[i]
    lanes = (chains[0] + chains[1]) + (chains[2] + chains[3])
    lanes = lanes[:4] + lanes[4:]
    lanes = lanes[:2] + lanes[2:]
    return lanes[0] + lanes[1] + single


@CASES
@pytest.mark.parametrize("share", [0.02, 0.5, 1.0])
def test_the_order_of_additions_is_written_down(n, share, rng):
    x, w, inside = rng.normal(size=n), rng.random(n), rng.random(n) < share
    words = words_of(inside)
    assert total(words, x) == in_order(x, inside)
    assert product(words, x, w) == in_order(w * x, inside)
    assert total(words, x) == pytest.approx(x[inside].sum(), abs=1e-10)


def test_a_number_that_is_none_stays_out_of_sums(rng):
    """What a mask leaves out is not multiplied by 0."""
    x, inside = rng.normal(size=100), np.arange(100) % 2 == 0
    x[~inside] = np.nan
    assert total(words_of(inside), x) == in_order(x, inside)


def test_strides_are_refused(rng):
    with pytest.raises(TypingError, match="contiguous"):
        total(words_of(np.ones(50, dtype=bool)), rng.normal(size=100)[::2])
