"""What compiled graphs ask of an encoded forest, called by name; sizes are data.

So a model of other rows, trees or ``max_nodes`` compiles none of it.
"""

import numpy as np
from numba import carray, types

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.external import external
from pymc_trees.core.leaves.outputs import ConstantLeaf
from pymc_trees.core.value.evaluate import evaluate
from pymc_trees.core.value.fields import TIME_TERMS, Layout, Sizes, sizes
from pymc_trees.core.value.summary import summarise

N_SIZES = len(Sizes._fields)
N_SCALARS = 2 + TIME_TERMS
"""Numbers that `summarise` finds beside its arrays."""


def sizes_of(layout: Layout) -> np.ndarray:
    """`Sizes` of a layout as a vector."""
    return np.array(sizes(layout), dtype=np.int64)


@njit(cache=True)
def read_sizes(s):
    """`Sizes` from such a vector."""
    return Sizes(s[0], s[1], s[2], s[3], s[4], s[5], s[6] != 0, s[7] != 0, s[8], s[9] != 0)


@external(types.int64(*[types.voidptr] * 4, types.float64, types.voidptr))
def evaluate_by_name(value, X, X_train, numbers, fingerprint, out):
    """`evaluate` into ``out``; 1 where it raises.

    ``numbers`` are those of `sizes_of`, the shape of ``X`` and the columns of ``X_train``.
    """
    n = carray(numbers, (N_SIZES + 3,), np.int64)
    s = read_sizes(n)
    rows = n[N_SIZES]
    value = carray(value, (s.rows, s.fields), np.float64)
    X = carray(X, (rows, n[N_SIZES + 1]), np.float64)
    X_train = carray(X_train, (s.n_rows, n[N_SIZES + 2]), np.float64)
    out = carray(out, (rows, s.n_values), np.float64)
    try:
        outputs = evaluate(value, X, X_train, ConstantLeaf(s.n_values), s, fingerprint)
    except Exception:
        return 1
    for i in range(rows):
        for v in range(s.n_values):
            out[i, v] = outputs[i, v]
    return 0


def raise_again(value, X, X_train, numbers, fingerprint):
    """Raise what `evaluate_by_name` caught, from Python."""
    s = read_sizes.py_func(numbers)
    evaluate(value, X, X_train, ConstantLeaf(s.n_values), s, fingerprint)


@external(types.int64(*[types.voidptr] * 2, types.float64, *[types.voidptr] * 4))
def summarise_by_name(value, numbers, fingerprint, splits, open_leaves, values, scalars):
    """`summarise` into arrays with room for any forest; depths + leaves * 2**32 that it found."""
    s = read_sizes(carray(numbers, (N_SIZES,), np.int64))
    value = carray(value, (s.rows, s.fields), np.float64)
    splits = carray(splits, (s.max_nodes + 1,), np.float64)
    open_leaves = carray(open_leaves, (s.max_nodes + 1,), np.float64)
    values = carray(values, (s.max_nodes, s.n_values), np.float64)
    scalars = carray(scalars, (N_SCALARS,), np.float64)
    found = summarise(value, s, fingerprint)
    depths, leaves = found[0].size, found[2].shape[0]
    for d in range(depths):
        splits[d], open_leaves[d] = found[0][d], found[1][d]
    for k in range(leaves):
        for v in range(s.n_values):
            values[k, v] = found[2][k, v]
    scalars[0], scalars[1] = found[3], found[4]
    for k in range(TIME_TERMS):
        scalars[2 + k] = found[5][k]
    return depths + (leaves << 32)
