"""Tables of the normal-gamma leaf: number of rows, sum, sum of squares."""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import register
from pymc_trees.core.leaves.normal_gamma import NormalGammaData, log_marginal_of


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
            table[0, a, code] += 1.0
            if y.size > 0:
                table[1, a, code] += y[i]
                table[2, a, code] += y[i] * y[i]


@njit(cache=True)
def _tempering(leaf, rows, start, stop):
    return 1.0  # the spread of a leaf is its own already


@njit(cache=True)
def _weigh_column(leaf, table, place, n_codes, gain):
    a, nu, lam, centre = leaf.a, leaf.nu, leaf.lam, leaf.centre
    seen = leaf.y.size > 0
    n, s, ss = 0.0, 0.0, 0.0
    for k in range(n_codes):
        n += table[0, place, k]
        s += table[1, place, k]
        ss += table[2, place, k]
    all_rows = log_marginal_of(a, nu, lam, centre, n if seen else 0.0, s, ss)
    n_left, s_left, ss_left = 0.0, 0.0, 0.0
    # nothing parted: p(no rows) is 1, and the formula gives it as such
    top = 0.0
    gain[0] = 0.0
    for k in range(n_codes):
        if table[0, place, k] > 0.0:
            n_left += table[0, place, k]
            s_left += table[1, place, k]
            ss_left += table[2, place, k]
            if n_left == n:
                gain[k + 1] = 0.0
            elif seen:
                gain[k + 1] = (
                    log_marginal_of(a, nu, lam, centre, n_left, s_left, ss_left)
                    + log_marginal_of(a, nu, lam, centre, n - n_left, s - s_left, ss - ss_left)
                    - all_rows
                )
            else:
                gain[k + 1] = 0.0
        else:
            gain[k + 1] = gain[k]
        top = max(top, gain[k + 1])
    for k in range(n_codes + 1):
        gain[k] = np.exp(max(gain[k] - top, -300.0))
    return top


@njit(cache=True)
def _weigh_cells(leaf, table, offsets, columns, n, power, unit, room, gain, log_factor):
    for a in range(n):
        n_codes = offsets[columns[a] + 1] - offsets[columns[a]]
        log_factor[a] = _weigh_column(leaf, table, a, n_codes, gain[a])


@njit(cache=True)
def _prefix_stats(leaf, table, place, k, unit, out):
    out[:] = 0.0
    if leaf.y.size > 0:
        for code in range(k + 1):
            for d in range(3):
                out[d] += table[d, place, code]


register(
    NormalGammaData,
    table_layout=lambda leaf: (3, np.float64),
    pack_rows=_pack_rows,
    add_cells=_add_cells,
    tempering=_tempering,
    weigh_cells=_weigh_cells,
    prefix_stats=_prefix_stats,
)
