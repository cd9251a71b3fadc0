"""Numbers at the rows of a set, eight at a time.

A set of rows is an array of 64-bit words, row i being bit ``i % 64`` of word ``i // 64``. Each byte
of a word is a mask of eight rows, which AVX-512 uses directly; compilers do not vectorise this by
themselves. The order of additions is fixed here, so a sum is the same on every processor.

All are called from compiled code only, with contiguous arrays: ``words`` of uint64, ``x`` and ``w``
of float64.
"""

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

_LANES = 8
_CHAINS = 4  # separate partial sums: an addition need not wait for the previous one
_F64, _I64, _I32, _I8, _I1 = ir.DoubleType(), *(ir.IntType(bits) for bits in (64, 32, 8, 1))
_VECTOR, _MASK = ir.VectorType(_F64, _LANES), ir.VectorType(_I1, _LANES)


class _Numbers:
    """Array that is read and written eight numbers at a time, or singly."""

    def __init__(self, context, builder, kind, value):
        if kind.layout != "C" or kind.ndim != 1:
            raise TypingError(f"{kind} is not a contiguous array of one dimension")
        self.builder = builder
        self.array = context.make_array(kind)(context, builder, value)

    def _address(self, row, is_one):
        address = self.builder.gep(self.array.data, [row])
        return address if is_one else self.builder.bitcast(address, _VECTOR.as_pointer())

    def load(self, row, is_one):
        return self.builder.load(self._address(row, is_one), align=8)


class _Sum:
    """A sum of numbers under masks."""

    def __init__(self, builder):
        self.builder = builder
        zeros = ir.Constant(_VECTOR, [0.0] * _LANES)
        self.chains = [cgutils.alloca_once_value(builder, zeros) for _ in range(_CHAINS)]
        self.single = cgutils.alloca_once_value(builder, _F64(0.0))

    def add(self, k, mask, numbers, is_one):
        builder, place = self.builder, self.single if is_one else self.chains[k % _CHAINS]
        before = builder.load(place)
        builder.store(builder.select(mask, builder.fadd(before, numbers), before), place)

    def total(self):
        builder = self.builder
        a, b, c, d = (builder.load(chain) for chain in self.chains)
        vector = builder.fadd(builder.fadd(a, b), builder.fadd(c, d))
        parts = [builder.extract_element(vector, _I32(lane)) for lane in range(_LANES)]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [builder.fadd(parts[k], parts[k + half]) for k in range(half)]
        return builder.fadd(parts[0], builder.load(self.single))


def _for_rows(builder, words, n, visit):
    """``visit(k, mask, row, is_one)`` for all n rows: eight from ``row`` on, or one of the last.

    k is the index of the byte in its word, if known.
    """
    n_words = builder.lshr(n, _I64(6))
    with cgutils.for_range(builder, n_words) as loop:
        word = words.load(loop.index, True)
        base = builder.shl(loop.index, _I64(6))
        for k in range(8):
            byte = builder.trunc(builder.lshr(word, _I64(8 * k)), _I8)
            visit(k, builder.bitcast(byte, _MASK), builder.add(base, _I64(8 * k)), False)
    first, last = builder.shl(n_words, _I64(6)), builder.and_(n, _I64(-8))

    def shifted(row):
        return builder.lshr(words.load(n_words, True), builder.and_(row, _I64(63)))

    with cgutils.for_range_slice(builder, first, last, _I64(8)) as (row, _):
        visit(0, builder.bitcast(builder.trunc(shifted(row), _I8), _MASK), row, False)
    with cgutils.for_range_slice(builder, last, n, _I64(1)) as (row, _):
        visit(0, builder.trunc(shifted(row), _I1), row, True)


def _over_rows(body):
    """Code of an intrinsic: ``body(builder, for_rows, *arguments)`` without the words."""

    def generate(context, builder, signature, arguments):
        arrays = [
            _Numbers(context, builder, kind, value) if isinstance(kind, types.Array) else value
            for kind, value in zip(signature.args, arguments, strict=True)
        ]
        words, x = arrays[:2]
        n = builder.extract_value(x.array.shape, 0)
        return body(builder, lambda visit: _for_rows(builder, words, n, visit), *arrays[1:])

    return generate


@intrinsic
def masked_sum(typing_context, words, x):
    """Sum of x over a set of rows."""

    def body(builder, for_rows, x):
        total = _Sum(builder)
        for_rows(lambda k, mask, row, one: total.add(k, mask, x.load(row, one), one))
        return total.total()

    return types.float64(words, x), _over_rows(body)


@intrinsic
def masked_product_sum(typing_context, words, x, w):
    """Sum of w x over a set of rows."""

    def body(builder, for_rows, x, w):
        total = _Sum(builder)

        def visit(k, mask, row, one):
            total.add(k, mask, builder.fmul(w.load(row, one), x.load(row, one)), one)

        for_rows(visit)
        return total.total()

    return types.float64(words, x, w), _over_rows(body)


if config.DISABLE_JIT:  # kernels run as Python

    def _rows(words, x):
        return np.unpackbits(words.view(np.uint8), bitorder="little")[: x.size].astype(bool)

    def masked_sum(words, x):  # noqa: F811
        """Sum of x over a set of rows."""
        return x[_rows(words, x)].sum()

    def masked_product_sum(words, x, w):  # noqa: F811
        """Sum of w x over a set of rows."""
        rows = _rows(words, x)
        return (w[rows] * x[rows]).sum()
