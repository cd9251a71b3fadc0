"""Likelihoods given by the address of a native function.

The function has the C signature

    int64 f(int64 u, int64* rows, double* outputs, int64* table, double* data, double* result)

``outputs`` are (u, K) outputs of the forest at some rows, ``result`` receives a fixed count of
numbers for each; it returns 1, or 0 after an exception. Kernels receive only its address, so they
are not recompiled for each likelihood.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from pymc_trees.core.compile.cache import njit

_N_POINTERS = 5
SIGNATURE = types.int64(types.int64, *[types.voidptr] * _N_POINTERS)
"""For `numba.cfunc`."""


@intrinsic
def _call(typing_context, address, n, rows, outputs, table, data, result):
    signature = types.int64(*[types.int64] * (2 + _N_POINTERS))

    def generate(context, builder, signature, arguments):
        word = ir.IntType(64)
        function = ir.FunctionType(word, [word] * (1 + _N_POINTERS))
        return builder.call(builder.inttoptr(arguments[0], function.as_pointer()), arguments[1:])

    return signature, generate


@njit(cache=True)
def call_native(address, n, rows, outputs, table, data, result):
    """Call a native likelihood for ``rows[:n]`` with the outputs ``outputs[:n]``."""
    succeeded = _call(
        address,
        n,
        rows.ctypes.data,
        outputs.ctypes.data,
        table.ctypes.data,
        data.ctypes.data,
        result.ctypes.data,
    )
    if succeeded != 1:
        raise RuntimeError(
            "The likelihood of the forest could not be evaluated: an exception was raised inside "
            "the model's log-probability, and reported above."
        )


# --------------------------------------------------------------------------------------------------
# Gradient and second derivatives of rows, by differences where the model's own are not finite.
#
# Automatic derivatives can be NaN at rows whose log-likelihood is smooth: 0 times infinity from
# the branch of a switch that is not taken, ``exp(f) / exp(f)`` after overflow, ``0 log(0)``. They
# are NaN at all rows if PyTensor has none (`targets.terms`). Such rows take
#
#     H_ab = (g_b(f + h e_a) - g_b(f - h e_a)) / 2h
#
# if these gradients are finite, and otherwise differences of the log-likelihood. If that is not
# finite either, at a boundary of the support for example, proposals ignore the row. Derivatives
# only shape proposals, so an error costs efficiency at most.


STEP = 1e-3
"""h in prior sds of a leaf value: smaller than the scale of any row, and large enough that rounding
adds at most 1e-10 of the log-likelihood to a curvature in units of the prior precision."""


@njit(cache=True)
def call_slopes(leaf, n, rows, outputs, slopes):
    """Write the (n, K + K^2) derivatives of ``rows[:n]`` at ``outputs[:n]``."""
    call_native(leaf.slopes_at, n, rows, outputs, leaf.table, leaf.data, slopes)
    n_bad = 0
    for i in range(n):
        if not is_finite_sum(slopes[i]):
            n_bad += 1
    if n_bad > 0:
        _difference_gradients(leaf, n, n_bad, rows, outputs, slopes)


@njit(cache=True)
def is_finite_sum(numbers):
    """Whether numbers are finite."""
    total = 0.0
    for d in range(numbers.size):
        total += numbers[d]
    return np.isfinite(total)


@njit(cache=True)
def _difference_gradients(leaf, n, n_bad, rows, outputs, slopes):
    """Second derivatives as differences of gradients, for rows where they are not finite."""
    k = leaf.mean.size
    positions, bad_rows = np.empty(n_bad, dtype=np.int64), np.empty(n_bad, dtype=np.int64)
    points, differences = np.empty((n_bad, k)), np.empty((n_bad, k + k * k))
    above, below = np.empty((n_bad, k + k * k)), np.empty((n_bad, k + k * k))
    u = 0
    for i in range(n):
        if not is_finite_sum(slopes[i]):
            positions[u], bad_rows[u] = i, rows[i]
            points[u], differences[u, :k] = outputs[i, :k], slopes[i, :k]
            u += 1
    for a in range(k):
        h = STEP * leaf.sd[a]
        points[:, a] += h
        call_native(leaf.slopes_at, n_bad, bad_rows, points, leaf.table, leaf.data, above)
        points[:, a] -= 2.0 * h
        call_native(leaf.slopes_at, n_bad, bad_rows, points, leaf.table, leaf.data, below)
        points[:, a] += h
        for u in range(n_bad):
            for b in range(k):
                differences[u, k + a * k + b] = (above[u, b] - below[u, b]) / (2.0 * h)
    n_left = 0
    for u in range(n_bad):
        if is_finite_sum(differences[u]):
            slopes[positions[u]] = differences[u]
        else:
            positions[n_left], bad_rows[n_left], points[n_left] = (
                positions[u],
                bad_rows[u],
                points[u],
            )
            n_left += 1
    if n_left > 0:
        _difference_values(leaf, n_left, positions, bad_rows, points, slopes)


@njit(cache=True)
def _difference_values(leaf, n, positions, rows, points, slopes):
    """Both derivatives from the log-likelihood, where it is finite."""
    k = leaf.mean.size
    middle, sides, pair = np.empty((n, 1)), np.empty((2, k, n, 1)), np.empty((2, n, 1))
    differences = np.empty((n, k + k * k))
    call_native(leaf.value_at, n, rows, points, leaf.table, leaf.data, middle)
    for a in range(k):
        h = STEP * leaf.sd[a]
        for side in range(2):
            step = h if side == 0 else -h
            points[:, a] += step
            call_native(leaf.value_at, n, rows, points, leaf.table, leaf.data, sides[side, a])
            points[:, a] -= step
        for u in range(n):
            up, down = sides[0, a, u, 0], sides[1, a, u, 0]
            differences[u, a] = (up - down) / (2.0 * h)
            differences[u, k + a * k + a] = (up - 2.0 * middle[u, 0] + down) / (h * h)
    for a in range(k):
        for b in range(a):
            h, g = STEP * leaf.sd[a], STEP * leaf.sd[b]
            for side in range(2):
                sign = 1.0 if side == 0 else -1.0
                points[:, a] += sign * h
                points[:, b] += sign * g
                call_native(leaf.value_at, n, rows, points, leaf.table, leaf.data, pair[side])
                points[:, a] -= sign * h
                points[:, b] -= sign * g
            for u in range(n):
                total = pair[0, u, 0] + pair[1, u, 0] + 2.0 * middle[u, 0]
                for side in range(2):
                    total -= sides[side, a, u, 0] + sides[side, b, u, 0]
                differences[u, k + a * k + b] = total / (2.0 * h * g)
                differences[u, k + b * k + a] = total / (2.0 * h * g)
    for u in range(n):
        if is_finite_sum(differences[u]):
            slopes[positions[u]] = differences[u]
