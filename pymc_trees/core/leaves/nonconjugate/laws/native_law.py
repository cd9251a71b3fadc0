"""A likelihood as native functions; ``data`` are its numbers by row, ``table`` their shape."""

import functools

import numpy as np
from numba import carray, cfunc

from pymc_trees.core.leaves.nonconjugate.native import SIGNATURE


@functools.cache  # cached: many models share one likelihood
def native_value(value):
    """Native function of the log-likelihood, from a kernel of one row."""

    def evaluate(n, rows, outputs, table, data, result):
        rows, outputs = carray(rows, (n,), np.int64), carray(outputs, (n,), np.float64)
        result, shape = carray(result, (n,), np.float64), carray(table, (2,), np.int64)
        numbers = carray(data, (shape[0], shape[1]), np.float64)
        for i in range(n):
            result[i] = value(numbers[rows[i]], outputs[i])
        return 1

    return cfunc(SIGNATURE)(evaluate)


@functools.cache
def native_slopes(slopes):
    """Native function of its derivatives, from a kernel of one row."""

    def evaluate(n, rows, outputs, table, data, result):
        rows, outputs = carray(rows, (n,), np.int64), carray(outputs, (n,), np.float64)
        result, shape = carray(result, (n, 2), np.float64), carray(table, (2,), np.int64)
        numbers = carray(data, (shape[0], shape[1]), np.float64)
        for i in range(n):
            result[i, 0], result[i, 1] = slopes(numbers[rows[i]], outputs[i])
        return 1

    return cfunc(SIGNATURE)(evaluate)
