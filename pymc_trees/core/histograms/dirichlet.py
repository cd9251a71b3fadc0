"""Tables of the Dirichlet leaf: number of rows, and of each class.

Marginal likelihoods are followed from code to code: moving c rows of a class from the right of a
cut to its left changes two terms of the product over classes on either side.
"""

import math

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import register
from pymc_trees.core.leaves.dirichlet import DirichletData


@njit(cache=True)
def _pack_rows(leaf, packed, unit):
    pass


@njit(cache=True)
def _add_cells(leaf, packed, rows, start, stop, codes, columns, n, table):
    y = leaf.y
    for k in range(start, stop):
        i = rows[k]
        for a in range(n):
            code = codes[i, columns[a]]
            table[0, a, code] += 1
            if y.size > 0:
                table[1 + y[i], a, code] += 1


@njit(cache=True)
def _tempering(leaf, rows, start, stop):
    return 1.0  # no noise beside that of the leaves


@njit(cache=True)
def _weigh_column(leaf, table, place, n_codes, gain):
    n_classes = leaf.n_classes
    lgamma, lgamma_all = leaf.lgamma_class, leaf.lgamma_all
    seen = leaf.y.size > 0
    left = np.zeros(n_classes, dtype=np.int64)
    right = np.zeros(n_classes, dtype=np.int64)
    n = 0
    for k in range(n_codes):
        n += table[0, place, k]
        for c in range(n_classes):
            right[c] += table[1 + c, place, k]
    whole = -lgamma_all[n] if seen else 0.0
    if seen:
        for c in range(n_classes):
            whole += lgamma[right[c]]
    classes = whole + lgamma_all[n] if seen else 0.0  # terms of the classes, both sides
    n_left = 0
    top = 0.0
    gain[0] = 0.0
    for k in range(n_codes):
        n_left += table[0, place, k]
        if seen and table[0, place, k] > 0:
            for c in range(n_classes):
                moved = table[1 + c, place, k]
                if moved > 0:
                    classes -= lgamma[left[c]] + lgamma[right[c]]
                    left[c] += moved
                    right[c] -= moved
                    classes += lgamma[left[c]] + lgamma[right[c]]
            gain[k + 1] = classes - lgamma_all[n_left] - lgamma_all[n - n_left] - whole
        else:
            gain[k + 1] = gain[k]
        top = max(top, gain[k + 1])
    for k in range(n_codes + 1):
        gain[k] = math.exp(max(gain[k] - top, -300.0))
    return top


@njit(cache=True)
def _weigh_cells(leaf, table, offsets, columns, n, power, unit, room, gain, log_factor):
    for a in range(n):
        n_codes = offsets[columns[a] + 1] - offsets[columns[a]]
        log_factor[a] = _weigh_column(leaf, table, a, n_codes, gain[a])


@njit(cache=True)
def _prefix_stats(leaf, table, place, k, unit, out):
    out[:] = 0.0
    for code in range(k + 1):
        for c in range(leaf.n_classes):
            out[c] += table[1 + c, place, code]


register(
    DirichletData,
    table_layout=lambda leaf: (leaf.n_classes + 1, np.int64),
    pack_rows=_pack_rows,
    add_cells=_add_cells,
    tempering=_tempering,
    weigh_cells=_weigh_cells,
    prefix_stats=_prefix_stats,
)
