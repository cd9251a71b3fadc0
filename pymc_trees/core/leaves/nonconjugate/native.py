"""Likelihoods given by the address of a native function.

The function has the C signature

    int64 f(int64 u, int64* rows, double* outputs, int64* table, double* data, double* result)

``outputs`` are (u, K) outputs of the forest at some rows, ``result`` receives a fixed count of
numbers for each; it returns 1, or 0 after an exception. Kernels receive only its address, so they
are not recompiled for each likelihood.
"""

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
    done = _call(
        address,
        n,
        rows.ctypes.data,
        outputs.ctypes.data,
        table.ctypes.data,
        data.ctypes.data,
        result.ctypes.data,
    )
    if done != 1:
        raise RuntimeError(
            "The likelihood of the forest could not be evaluated: an exception was raised inside "
            "the model's log-probability, and reported above."
        )
