"""Cells at the rows of a set, sixty-four at a time: what NumPy finds."""

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from pymc_trees.core.columns.row_set import words_of
from pymc_trees.core.compile.lanes import cell_range, write_up_to

KINDS = pytest.mark.parametrize("kind", ["uint8", "uint16", "float64"])


@njit
def up_to(words, cells, cut, out):
    write_up_to(words, cells, cells.dtype.type(cut), out)


@njit
def extent(words, cells):
    return cell_range(words, cells)


def cells_of(kind, rng, n):
    return rng.integers(0, 201, n).astype(kind) if kind != "float64" else rng.normal(size=n)


@KINDS
@pytest.mark.parametrize("n", [1, 5, 63, 64, 65, 127, 1000])
@pytest.mark.parametrize("share", [0.1, 1.0])
def test_they_are_those_of_numpy(kind, n, share, rng):
    cells, inside = cells_of(kind, rng, n), rng.random(n) < share
    inside[rng.integers(n)] = True
    words = words_of(inside)
    out = np.full_like(words, 7)
    for cut in (*rng.choice(cells, 5), cells.min(), cells.max(), 255.0):
        up_to(words, cells, cut, out)
        assert (out == words_of(inside & (cells <= cut))).all()
    assert extent(words, cells) == (cells[inside].min(), cells[inside].max())


@KINDS
def test_strides_are_refused(kind, rng):
    with pytest.raises(TypingError, match="contiguous"):
        extent(words_of(np.ones(50, dtype=bool)), cells_of(kind, rng, 100)[::2])
