"""Bits of a 64-bit word, counted and found by one instruction of the processor each."""

import numpy as np
from numba import config, types
from numba.extending import intrinsic


@intrinsic
def popcount(typing_context, word):
    """Number of set bits of a uint64, as int64.

    Called from compiled code only.
    """

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@intrinsic
def lowest_bit(typing_context, word):
    """Index of the lowest set bit of a uint64 other than 0, as int64.

    Called from compiled code only.
    """

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return types.int64(types.uint64), generate


if config.DISABLE_JIT:  # kernels run as Python

    def popcount(word):  # noqa: F811
        """Number of set bits."""
        return int(np.uint64(word)).bit_count()

    def lowest_bit(word):  # noqa: F811
        """Index of the lowest set bit."""
        word = int(np.uint64(word))
        return (word & -word).bit_length() - 1
