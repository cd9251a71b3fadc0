"""Cells at the rows of a set, sixty-four at a time: those up to a cut, the least and the largest.

A set of rows is an array of 64-bit words, as in `lanes`; cells are codes, uint8 or uint16, or
float64. A comparison of 64 cells yields one word; compilers do not vectorise this by themselves.

All are called from compiled code only, with contiguous arrays.
"""

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

_ROWS = 64
_I64, _I32, _I1 = (ir.IntType(bits) for bits in (64, 32, 1))
_MASK = ir.VectorType(_I1, _ROWS)


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
            inside = builder.bitcast(builder.load(given(loop.index)), _MASK)
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
