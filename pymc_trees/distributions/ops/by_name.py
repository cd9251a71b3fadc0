"""Kernels that compiled graphs call by name, for the function and the summary of a forest.

Sizes are data, so a model with other rows, trees or ``max_nodes`` compiles none of them again.
"""

import functools
from collections.abc import Callable

import numpy as np
from numba import carray, types

from pymc_trees.core.compile.cache import described, njit
from pymc_trees.core.compile.external import External, external
from pymc_trees.core.compile.threads import WORTH, by_rows, given_threads, taken_threads
from pymc_trees.core.leaves.contract import constant_leaf
from pymc_trees.core.value.evaluate import (
    cache_evaluated,
    check_columns,
    evaluate,
    link_table,
    look_up,
    nan_for_missing,
    same_content,
    walk_trees,
)
from pymc_trees.core.value.fields import CHECKSUM, TIME_TERMS, Layout, Sizes, is_intact, sizes
from pymc_trees.core.value.summary import summarise
from pymc_trees.distributions.leaves.contract import leaf_reading

N_SIZES = len(Sizes._fields)
N_SCALARS = 2 + TIME_TERMS
"""Numbers that `summarise` returns in addition to arrays."""


def sizes_of(layout: Layout) -> np.ndarray:
    """`Sizes` of a layout as a vector."""
    return np.array(sizes(layout), dtype=np.int64)


@njit(cache=True)
def read_sizes(s):
    """`Sizes` from such a vector."""
    return Sizes(s[0], s[1], s[2], s[3], s[4], s[5], s[6] != 0, s[7], s[8] != 0, s[9])


_OUTPUTS: dict[str, Callable] = {}


@functools.cache
def reader_of(outputs: Callable) -> Callable:
    """Compiled function of ``(n_values, X, constants)``: `LeafPrior.outputs`, given NaN."""
    if outputs is constant_leaf:
        return outputs

    @njit(cache=False)
    def read(n_values, X, constants):
        return outputs(n_values, nan_for_missing(X), constants)

    return read


DONE, RAISED, AT_TRAINING, ELSEWHERE = range(4)
"""What a kernel of `evaluation_of` returns: the last two leave the walk through the trees to
`walk_in_threads`."""
ONLY_KNOWN, WALK = range(2)


@functools.cache
def evaluation_of(outputs: Callable) -> External:
    """`evaluate` for the leaves that a kernel `LeafPrior.outputs` makes."""
    read, table = reader_of(outputs), link_table()
    kernel = getattr(outputs, "py_func", outputs)

    @external(types.int64(*[types.voidptr] * 5, types.float64, types.voidptr), of=described(kernel))
    def evaluate_by_name(value, X, X_train, constants, numbers, fingerprint, out):
        """`evaluate` into ``out``; 1 where it raises.

        ``numbers`` are those of `sizes_of`, the shape of ``X``, the columns of ``X_train``, the
        size of ``constants`` and what to do: `WALK`, or look a known function up, and walk
        through few trees at few rows.
        """
        n = carray(numbers, (N_SIZES + 5,), np.int64)
        s = read_sizes(n)
        value = carray(value, (s.rows, s.fields), np.float64)
        X = carray(X, (n[N_SIZES], n[N_SIZES + 1]), np.float64)
        X_train = carray(X_train, (s.n_rows, n[N_SIZES + 2]), np.float64)
        constants = carray(constants, (n[N_SIZES + 3],), np.float64)
        out = carray(out, (X.shape[0], s.n_outputs), np.float64)
        try:
            if n[N_SIZES + 4] != WALK:
                check_columns(X, X_train)
                if not is_intact(value, s.max_nodes, fingerprint):
                    out[:] = np.nan
                    return DONE
                at_training = same_content(X, X_train)
                rows = X[: 0 if at_training else X.shape[0]]
                if look_up(table(), value, value[s.max_nodes, CHECKSUM], fingerprint, rows, out):
                    return DONE
                if at_training:
                    return AT_TRAINING
                if X.shape[0] * s.m >= WORTH:
                    return ELSEWHERE
            walk_trees(value, X, X_train, read(s.n_values, X, constants), s, out)
        except Exception:
            return RAISED
        return DONE

    _OUTPUTS[evaluate_by_name.name] = outputs
    return evaluate_by_name


def walk_in_threads(name, code, value, X, X_train, constants, numbers, fingerprint, out):
    """Do from Python what the kernel of a name left to do, as the code it returned says.

    The walk takes the threads of this process' chain. A function at the training rows is kept, for
    graphs that read a forest which no step moves.
    """
    if code == RAISED:
        raise_again(name, value, X, X_train, constants, numbers, fingerprint)
    kernel, [m, n] = evaluation_of(_OUTPUTS[name]), [numbers[0], len(X)]

    def walk(start, stop):
        own = numbers.copy()
        own[N_SIZES], own[N_SIZES + 4] = stop - start, WALK
        rows, written = X[start:stop], out[start:stop]
        arrays = (a.ctypes.data for a in (value, rows, X_train, constants, own))
        return kernel(*arrays, fingerprint, written.ctypes.data)

    with taken_threads(given_threads() if m * n >= WORTH else 1) as n_threads:
        if any(by_rows(walk, n, n_threads)):
            raise_again(name, value, X, X_train, constants, numbers, fingerprint)
    if code == AT_TRAINING:
        checksum = value[numbers[1], CHECKSUM]
        cache_evaluated(value, checksum, fingerprint, out)


def outputs_at(kernel, value, X, X_train, constants, layout, fingerprint):
    """(rows of X, K) outputs of a forest, from Python; as compiled graphs have them."""
    numbers = np.array([*sizes(layout), *X.shape, X_train.shape[1], constants.size, ONLY_KNOWN])
    value, X, X_train, constants = map(np.ascontiguousarray, (value, X, X_train, constants))
    out, fingerprint = np.empty((len(X), layout.n_outputs)), float(fingerprint)
    arrays = (a.ctypes.data for a in (value, X, X_train, constants, numbers))
    code = kernel(*arrays, fingerprint, out.ctypes.data)
    if code != DONE:
        walk_in_threads(kernel.name, code, value, X, X_train, constants, numbers, fingerprint, out)
    return out


def raise_again(name, value, X, X_train, constants, numbers, fingerprint):
    """Raise what an external of that name caught, from Python."""
    s = read_sizes.py_func(numbers)
    leaf = leaf_reading(_OUTPUTS[name], s.n_values, X, constants)
    evaluate(value, X, X_train, leaf, s, fingerprint)


@external(types.int64(*[types.voidptr] * 2, types.float64, *[types.voidptr] * 4))
def summarise_by_name(value, numbers, fingerprint, splits, splittable_leaves, values, scalars):
    """`summarise` into arrays with room for any forest; returns depths + leaves * 2**32."""
    s = read_sizes(carray(numbers, (N_SIZES,), np.int64))
    value = carray(value, (s.rows, s.fields), np.float64)
    splits = carray(splits, (s.max_nodes + 1,), np.float64)
    splittable_leaves = carray(splittable_leaves, (s.max_nodes + 1,), np.float64)
    values = carray(values, (s.max_nodes, s.n_values), np.float64)
    scalars = carray(scalars, (N_SCALARS,), np.float64)
    summary = summarise(value, s, fingerprint)
    depths, leaves = summary[0].size, summary[2].shape[0]
    for d in range(depths):
        splits[d], splittable_leaves[d] = summary[0][d], summary[1][d]
    for k in range(leaves):
        for v in range(s.n_values):
            values[k, v] = summary[2][k, v]
    scalars[0], scalars[1] = summary[3], summary[4]
    for k in range(TIME_TERMS):
        scalars[2 + k] = summary[5][k]
    return depths + (leaves << 32)
