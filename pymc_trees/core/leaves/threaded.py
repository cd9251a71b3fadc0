"""`normal` for many rows: threads process blocks of rows.

The sum over rows adds up the sums of the blocks in order: it is the same for any number of threads.
"""

from typing import NamedTuple

import numpy as np
from numba import prange

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.lanes import masked_product_sum, masked_sum
from pymc_trees.core.leaves.contract import add_outputs, register, subtract_outputs
from pymc_trees.core.leaves.latent.rows import LatentRows
from pymc_trees.core.leaves.normal import (
    KERNELS,
    LANES,
    SPARSE,
    NormalData,
    clear_lanes,
    sum_one_by_one,
    sum_weighted,
    update_and_sum,
    update_residual,
    write_stats,
)

BLOCKS = 16
"""Number of blocks of rows, and the largest number of threads."""
ROWS = 200_000
"""Number of rows from which threads are faster (benchmarks)."""


class ThreadedNormal(NamedTuple):
    """`NormalData`, and the number of threads."""

    mean: float
    sd: float
    r: np.ndarray
    """(n,) working residual."""
    w: np.ndarray
    """(n,) precision of each row, or (1,) of all rows."""
    lanes: np.ndarray
    """(BLOCKS, 8 max_nodes) workspace of each block."""
    latent: LatentRows
    sums: np.ndarray
    """(BLOCKS, 2) workspace: statistics of a set of rows in each block."""
    n_threads: int


def in_threads(leaf, n_threads: int):
    """A normal leaf of many rows with a number of threads; other leaves unchanged."""
    if type(leaf) is not NormalData or leaf.r.size < ROWS:
        return leaf
    lanes = np.empty((BLOCKS, leaf.lanes.size))
    return ThreadedNormal(*leaf._replace(lanes=lanes), np.zeros((BLOCKS, 2)), n_threads)


@njit(cache=True)
def _bounds(n, block):
    size = -(-n // (64 * BLOCKS)) * 64
    return min(block * size, n), min((block + 1) * size, n)


@njit(cache=True)
def _visit_block(r, w, values, old_of, new_of, lanes, column, nodes, block):
    """Update the residual of the rows of a block, and sum it by leaf."""
    start, stop = _bounds(r.size, block)
    r, lanes = r[start:stop], lanes[block]
    old_of, new_of = old_of[start:stop], new_of[start:stop]
    clear_lanes(lanes, column, nodes, nodes.size)
    if w.size == 1:
        update_and_sum(r, values, old_of, new_of, lanes)
    else:
        update_residual(r, values, old_of, new_of)
        sum_weighted(r, w[start:stop], new_of, lanes)


@njit(cache=True, parallel=True)
def _visit_blocks(r, w, values, old_of, new_of, lanes, column, nodes, n_threads):
    for thread in prange(n_threads):
        for block in range(thread, BLOCKS, n_threads):
            _visit_block(r, w, values, old_of, new_of, lanes, column, nodes, block)


@njit(cache=True)
def _swap_residual(leaf, trees, old, new, nodes, n_nodes, stats):
    r, w, lanes, column = leaf.r, leaf.w, leaf.lanes, trees.column
    leaf_of, values = trees.leaf_of, trees.values.reshape(-1)
    if new < 0:
        subtract_outputs(leaf, trees.values, leaf_of[old], r.reshape(r.size, 1))
        return
    if old < 0:
        add_outputs(leaf, trees.values, leaf_of[new], r.reshape(r.size, 1))
    old_of = leaf_of[new if old < 0 else old]  # closing and opening the same tree changes nothing
    new_of, nodes = leaf_of[new], nodes[:n_nodes]
    if leaf.n_threads > 1:
        _visit_blocks(r, w, values, old_of, new_of, lanes, column, nodes, leaf.n_threads)
    else:
        for block in range(BLOCKS):
            _visit_block(r, w, values, old_of, new_of, lanes, column, nodes, block)
    for k in range(n_nodes):
        if column[nodes[k]] < 0:
            for place in range(nodes[k] * LANES, (nodes[k] + 1) * LANES):
                for block in range(1, BLOCKS):
                    lanes[0, place] += lanes[block, place]
    write_stats(w, lanes[0], trees.count, column, nodes, n_nodes, stats)


@njit(cache=True)
def _add_block(words, r, w, sums, block):
    start, stop = _bounds(r.size, block)
    words, r = words[start >> 6 : (stop + 63) >> 6], r[start:stop]
    if w.size == 1:
        sums[block, 1] = masked_sum(words, r)
    else:
        w = w[start:stop]
        sums[block, 0] = masked_sum(words, w)
        sums[block, 1] = masked_product_sum(words, r, w)


@njit(cache=True, parallel=True)
def _add_blocks(words, r, w, sums, n_threads):
    for thread in prange(n_threads):
        for block in range(thread, BLOCKS, n_threads):
            _add_block(words, r, w, sums, block)


@njit(cache=True)
def _add_set(leaf, rows, out):
    r, w, words, sums = leaf.r, leaf.w, rows.words, leaf.sums
    if w.size == 1 and rows.n <= SPARSE * words.size:
        out[0] = w[0] * rows.n
        out[1] = w[0] * sum_one_by_one(words, r)
        return
    if leaf.n_threads > 1:
        _add_blocks(words, r, w, sums, leaf.n_threads)
    else:
        for block in range(BLOCKS):
            _add_block(words, r, w, sums, block)
    for block in range(1, BLOCKS):
        sums[0, 0] += sums[block, 0]
        sums[0, 1] += sums[block, 1]
    out[0] = w[0] * rows.n if w.size == 1 else sums[0, 0]
    out[1] = w[0] * sums[0, 1] if w.size == 1 else sums[0, 1]


register(ThreadedNormal, **KERNELS | {"swap_residual": _swap_residual, "add_set": _add_set})
