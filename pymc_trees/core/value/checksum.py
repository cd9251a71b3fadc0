"""The checksum of an encoded value: 52 bits over a declaration's fingerprint and every entry.

Forests and soft trees use the same one; only its position differs.
"""

import hashlib

import numpy as np

from pymc_trees.core.columns.table_file import row_blocks
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.value.fields import CHECKSUM

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_FOLD = np.uint64(29)
_KEEP = np.uint64(12)


def fingerprint(*parts) -> float:
    """52-bit fingerprint, as a whole float, of arrays and of anything with a faithful repr."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype}{part.shape}".encode())
            for block in [part] if part.ndim != 2 else (rows for _, rows in row_blocks(part)):
                digest.update(np.ascontiguousarray(block).reshape(-1).view(np.uint8))
        else:
            digest.update(repr(part).encode())
    return float(int.from_bytes(digest.digest()[:8], "little") >> 12)


@njit(cache=True)
def _mix(state, word):
    state = (state ^ word) * _MULTIPLIER
    return state ^ (state >> _FOLD)


@njit(cache=True)
def checksum(value, skip, fingerprint):
    """52-bit checksum of a C-contiguous value without entry ``skip``, a whole float."""
    words = value.reshape(-1).view(np.uint64)
    # Four chains hide the latency of the multiplication.
    a = np.uint64(fingerprint)
    b = ~a
    c = a ^ _MULTIPLIER
    d = ~c
    start = 0
    for end in (skip, words.size):
        k = start
        while k + 4 <= end:
            a = _mix(a, words[k])
            b = _mix(b, words[k + 1])
            c = _mix(c, words[k + 2])
            d = _mix(d, words[k + 3])
            k += 4
        while k < end:
            a = _mix(a, words[k])
            k += 1
        start = skip + 1
    total = _mix(_mix(_mix(_mix(a, b), c), d), np.uint64(words.size))
    return float(total >> _KEEP)


@njit(cache=True)
def compute_checksum(value, max_nodes, fingerprint):
    """Checksum of a forest; the checksum entry itself is left out."""
    return checksum(value, max_nodes * value.shape[1] + CHECKSUM, fingerprint)


@njit(cache=True)
def is_intact(value, max_nodes, fingerprint):
    """Whether the value is unchanged since `encode` made it for this design."""
    return value[max_nodes, CHECKSUM] == compute_checksum(value, max_nodes, fingerprint)
