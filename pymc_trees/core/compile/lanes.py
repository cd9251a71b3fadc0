"""Numbers and cells at the rows of a set, several at a time; bits of words; copies of arrays.

A set of rows is a row of 64-bit words.
"""

import numpy as np
from llvmlite import ir
from numba import TypingError, config, types
from numba.core import cgutils
from numba.extending import intrinsic

from pymc_trees.core.compile.cache import njit

# ----------- Copying arrays: numba's own assignment makes a temporary array if the two may overlap


@njit(cache=True)
def copy_numbers(source, target):
    """Copy an array to another of the same size."""
    for k in range(source.size):
        target[k] = source[k]


# --------------- Bits of a 64-bit word, counted and found by one instruction of the processor each


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


# --------------------------------------------------- Numbers at the rows of a set, eight at a time
#
# A set of rows is an array of 64-bit words, row i being bit ``i % 64`` of word ``i // 64``. Each
# byte of a word is a mask of eight rows, which AVX-512 uses directly; compilers do not vectorise
# this by themselves. The order of additions is fixed here, so a sum is the same on every
# processor.
#
# All are called from compiled code only, with contiguous arrays: ``words`` of uint64, ``x`` and
# ``w`` of float64.


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


# --------------------------------------------------------------------------------------------------
# Cells at the rows of a set, sixty-four at a time: those up to a cut, the least and the largest.
#
# A set of rows is an array of 64-bit words, as in `lanes`; cells are codes, uint8 or uint16, or
# float64. A comparison of 64 cells yields one word; compilers do not vectorise this by
# themselves.
#
# All are called from compiled code only, with contiguous arrays.


_ROWS = 64
_ROW_MASK = ir.VectorType(_I1, _ROWS)


class _Cells:
    """Cells of a column, read sixty-four at a time or singly."""

    def __init__(self, context, builder, kind, value):
        if kind not in (types.uint8[::1], types.uint16[::1], types.float64[::1]):
            raise TypingError(f"{kind} is not a contiguous array of codes or of float64")
        self.builder, self.is_float = builder, kind.dtype is types.float64
        self.array = context.make_array(kind)(context, builder, value)
        self.width = kind.dtype.bitwidth
        self.cell = ir.DoubleType() if self.is_float else ir.IntType(self.width)
        self.vector = ir.VectorType(self.cell, _ROWS)
        self.n = builder.extract_value(self.array.shape, 0)

    def one(self, row):
        return self.builder.load(self.builder.gep(self.array.data, [row]))

    def many(self, row):
        address = self.builder.gep(self.array.data, [row])
        pointer = self.builder.bitcast(address, self.vector.as_pointer())
        return self.builder.load(pointer, align=self.width // 8)

    def everywhere(self, cell):
        lane = self.builder.insert_element(ir.Constant(self.vector, ir.Undefined), cell, _I32(0))
        zeros = ir.Constant(ir.VectorType(_I32, _ROWS), [0] * _ROWS)
        return self.builder.shuffle_vector(lane, lane, zeros)

    def compare(self, sign, a, b):
        if self.is_float:
            return self.builder.fcmp_ordered(sign, a, b)
        return self.builder.icmp_unsigned(sign, a, b)

    @property
    def extremes(self):
        if self.is_float:
            return np.inf, -np.inf
        return (1 << self.width) - 1, 0


def _words(context, builder, kind, value):
    array = context.make_array(kind)(context, builder, value)
    return lambda w: builder.gep(array.data, [w])


@intrinsic
def write_up_to(typing_context, words, cells, cut, out):
    """Write the rows of a set whose cell is at most the cut, of the same type."""

    def generate(context, builder, signature, arguments):
        read = _Cells(context, builder, cells, arguments[1])
        cut = arguments[2]
        given, written = (_words(context, builder, words, arguments[k]) for k in (0, 3))
        many_cuts = read.everywhere(cut)
        n_words = builder.lshr(read.n, _I64(6))
        with cgutils.for_range(builder, n_words) as loop:
            row = builder.shl(loop.index, _I64(6))
            below = read.compare("<=", read.many(row), many_cuts)
            word = builder.and_(builder.bitcast(below, _I64), builder.load(given(loop.index)))
            builder.store(word, written(loop.index))
        with builder.if_then(builder.icmp_unsigned("!=", builder.and_(read.n, _I64(63)), _I64(0))):
            place = cgutils.alloca_once_value(builder, _I64(0))
            with cgutils.for_range_slice(
                builder, builder.shl(n_words, _I64(6)), read.n, _I64(1)
            ) as (row, _):
                below = builder.zext(read.compare("<=", read.one(row), cut), _I64)
                bit = builder.shl(below, builder.and_(row, _I64(63)))
                builder.store(builder.or_(builder.load(place), bit), place)
            word = builder.and_(builder.load(place), builder.load(given(n_words)))
            builder.store(word, written(n_words))
        return context.get_dummy_value()

    return types.none(words, cells, cells.dtype, words), generate


@intrinsic
def cell_range(typing_context, words, cells):
    """Least and largest cell at the rows of a set, none of them NaN."""

    def generate(context, builder, signature, arguments):
        read = _Cells(context, builder, cells, arguments[1])
        given = _words(context, builder, words, arguments[0])
        least, largest = read.extremes
        found = []
        for kind in (read.vector, read.cell):
            ends = ([least] * _ROWS, [0] * _ROWS) if kind is read.vector else (least, largest)
            found.append([cgutils.alloca_once_value(builder, ir.Constant(kind, e)) for e in ends])

        def note(places, inside, there):
            low, high = (builder.load(place) for place in places)
            is_less = builder.and_(inside, read.compare("<", there, low))
            is_more = builder.and_(inside, read.compare(">", there, high))
            builder.store(builder.select(is_less, there, low), places[0])
            builder.store(builder.select(is_more, there, high), places[1])

        n_words = builder.lshr(read.n, _I64(6))
        with cgutils.for_range(builder, n_words) as loop:
            inside = builder.bitcast(builder.load(given(loop.index)), _ROW_MASK)
            note(found[0], inside, read.many(builder.shl(loop.index, _I64(6))))
        with cgutils.for_range_slice(builder, builder.shl(n_words, _I64(6)), read.n, _I64(1)) as (
            row,
            _,
        ):
            word = builder.lshr(builder.load(given(n_words)), builder.and_(row, _I64(63)))
            note(found[1], builder.trunc(word, _I1), read.one(row))
        ends = []
        for sign, vector, single in zip("<>", *found, strict=True):
            parts = builder.load(vector)
            half = _ROWS // 2
            while half:  # combine the upper half with the lower, down to one
                lanes = [ir.Constant(_I32, (k + half) % _ROWS) for k in range(_ROWS)]
                mask = ir.Constant(ir.VectorType(_I32, _ROWS), lanes)
                upper = builder.shuffle_vector(parts, parts, mask)
                wins = read.compare(sign, upper, parts)
                parts = builder.select(wins, upper, parts)
                half //= 2
            end, other = builder.extract_element(parts, _I32(0)), builder.load(single)
            ends.append(builder.select(read.compare(sign, other, end), other, end))
        return context.make_tuple(builder, signature.return_type, ends)

    return types.UniTuple(cells.dtype, 2)(words, cells), generate


if config.DISABLE_JIT:  # kernels run as Python

    def _rows(words, cells):
        return np.unpackbits(words.view(np.uint8), bitorder="little")[: cells.size].astype(bool)

    def write_up_to(words, cells, cut, out):  # noqa: F811
        """Write the rows of a set whose cell is at most the cut."""
        padded = np.zeros(_ROWS * words.size, dtype=bool)
        padded[: cells.size] = _rows(words, cells) & (cells <= cut)
        out[:] = np.packbits(padded, bitorder="little").view(np.uint64)

    def cell_range(words, cells):  # noqa: F811
        """Least and largest cell at the rows of a set."""
        found = cells[_rows(words, cells)]
        return found.min(), found.max()
