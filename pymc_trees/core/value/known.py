"""Functions at the training rows that this process knows, by the value of the forest.

A step that has moved a forest has added up its trees; nobody walks through them again to record the
function, or to read it in a log density. Whoever keeps a `Known` keeps the knowledge. A value is
compared entry by entry, together with the fingerprint of its declaration: what is found is the
function of that very forest at those very rows.

Compiled graphs find it in a table in memory, without a call into Python, where an interrupt would
be lost. They hold Python's global lock while they read, and the table changes under the same lock.
"""

import functools
from collections import OrderedDict
from weakref import WeakValueDictionary

import llvmlite.binding as llvm
import numpy as np
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

from pymc_trees.core.compile.cache import njit

SLOTS = 64
"""Functions that compiled code can find at once."""
MOST_WALKED = 4
"""Declarations of which the last walk is kept, for graphs that read a forest no step moves."""

_TABLE = np.zeros((SLOTS, 6), dtype=np.int64)
"""Bits of checksum and fingerprint, size and address of the value, those of the function."""
_CHECKSUM, _FINGERPRINT, _SIZE, _VALUE, _N_NUMBERS, _FIT = range(6)
_free = list(range(SLOTS))


class Known:
    """The function of a value at the training rows.

    Parameters
    ----------
    value : (rows, fields) float64
        An encoded forest.
    checksum, fingerprint : float
        Of the value and of its declaration, which includes the training rows.
    fit : (n, K) float64
        The outputs of its trees; nobody may write to them.
    """

    def __init__(self, value: np.ndarray, checksum: float, fingerprint: float, fit: np.ndarray):
        self.value, self.fit = value.copy(), np.ascontiguousarray(fit)
        self._slot = _free.pop() if _free else None
        if self._slot is not None:
            numbers = np.array([checksum, fingerprint]).view(np.int64)
            places = [value.size, self.value.ctypes.data, fit.size, self.fit.ctypes.data]
            _TABLE[self._slot] = [*numbers, *places]

    def __del__(self, table=_TABLE, free=_free):  # at exit the names of the module are gone
        if self._slot is not None:
            table[self._slot] = 0
            free.append(self._slot)

    def __reduce__(self):
        raise TypeError("what a process knows stays in the process")


_known: WeakValueDictionary[tuple[float, float], Known] = WeakValueDictionary()
_walked: OrderedDict[float, Known] = OrderedDict()


def publish_outputs(
    value: np.ndarray, checksum: float, fingerprint: float, fit: np.ndarray
) -> Known:
    """Let this process know the function of a value for as long as the result is kept."""
    known = Known(value, checksum, fingerprint, fit)
    _known[float(checksum), float(fingerprint)] = known
    return known


def keep_walked(value: np.ndarray, checksum: float, fingerprint: float, fit: np.ndarray) -> None:
    """Know the function of a value until another one of its declaration is walked."""
    _walked.pop(fingerprint, None)
    _walked[fingerprint] = publish_outputs(value, checksum, fingerprint, fit.copy())
    while len(_walked) > MOST_WALKED:
        _walked.popitem(last=False)


def known_fit(value: np.ndarray, checksum: float, fingerprint: float) -> np.ndarray | None:
    """(n, K) function of a value, or None; not to be written to."""
    known = _known.get((float(checksum), float(fingerprint)))
    return known.fit if known is not None and np.array_equal(known.value, value) else None


TABLE = types.ExternalFunction("pymc_trees.core.value.known.table", types.voidptr())
"""For compiled code, once `link_table` was called: where the table is."""


@functools.cache
def link_table() -> types.ExternalFunction:
    """Make the table of this process available to compiled code, which may be from another's."""
    here = f"{TABLE.symbol}.here"
    address = f"inttoptr (i64 {_TABLE.ctypes.data} to i8*)"
    code = llvm.parse_assembly(f'define i8* @"{here}"() {{ ret i8* {address} }}')
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(code, machine)
    engine.finalize_object()
    _engines.append(engine)  # which owns the code
    llvm.add_symbol(TABLE.symbol, engine.get_function_address(here))
    return TABLE


_engines: list = []


@intrinsic
def _pointer(typing_context, address):
    """Address as a pointer."""

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), generate


@njit(cache=True)
def look_up(table, value, checksum, fingerprint, out):
    """Write the function of a value at the training rows; False if it is not known.

    Parameters
    ----------
    table : pointer
        What `TABLE` returned.
    value, out : float64 arrays
        Contiguous.
    """
    table = carray(table, (SLOTS, 6), np.int64)
    bits, flat = value.reshape(-1).view(np.int64), out.reshape(-1)
    ids = np.array([checksum, fingerprint]).view(np.int64)
    for slot in range(SLOTS):
        if (
            table[slot, _CHECKSUM] != ids[0]
            or table[slot, _FINGERPRINT] != ids[1]
            or table[slot, _SIZE] != bits.size
            or table[slot, _N_NUMBERS] != flat.size
        ):
            continue
        known = carray(_pointer(table[slot, _VALUE]), (bits.size,), np.int64)
        differ = np.int64(0)
        for k in range(bits.size):
            differ |= bits[k] ^ known[k]
        if differ == 0:
            fit = carray(_pointer(table[slot, _FIT]), (flat.size,), np.float64)
            for k in range(flat.size):
                flat[k] = fit[k]
            return True
    return False
