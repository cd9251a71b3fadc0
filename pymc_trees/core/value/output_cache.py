"""Outputs at the training rows, cached for as long as a step holds the value of its forest.

A step that has moved a forest has added up its trees; recording the function, or reading it in a
log density, then needs no further walk through them. A `CachedOutputs` keeps its entry alive. A
value is compared entry by entry, together with the fingerprint of its declaration, so that a hit is
the function of exactly this forest at exactly these rows.

Compiled graphs read a table in memory, without a call into Python, where an interrupt would be
lost. They hold Python's global lock while they read, and the table changes under the same lock.
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
"""Entries that compiled code can find at once."""
MAX_EVALUATED = 4
"""Declarations whose last evaluation is kept, for graphs that read a forest no step moves."""

_TABLE = np.zeros((SLOTS, 6), dtype=np.int64)
"""Bits of checksum and fingerprint, size and address of the value, those of the function."""
_CHECKSUM, _FINGERPRINT, _SIZE, _VALUE, _N_NUMBERS, _OUTPUTS = range(6)
_free = list(range(SLOTS))


class CachedOutputs:
    """Outputs of a value at the training rows.

    Parameters
    ----------
    value : (rows, fields) float64
        An encoded forest.
    checksum, fingerprint : float
        Of the value and of its declaration, which includes the training rows.
    outputs : (n, K) float64
        Sum of the outputs of its trees; read-only.
    """

    def __init__(self, value: np.ndarray, checksum: float, fingerprint: float, outputs: np.ndarray):
        self.value, self.outputs = value.copy(), np.ascontiguousarray(outputs)
        self._slot = _free.pop() if _free else None
        if self._slot is not None:
            numbers = np.array([checksum, fingerprint]).view(np.int64)
            addresses = [value.size, self.value.ctypes.data, outputs.size, self.outputs.ctypes.data]
            _TABLE[self._slot] = [*numbers, *addresses]

    def __del__(self, table=_TABLE, free=_free):  # at exit the names of the module are gone
        if self._slot is not None:
            table[self._slot] = 0
            free.append(self._slot)

    def __reduce__(self):
        raise TypeError(
            "cached outputs belong to one process: pickle the step method or its sampling_state"
        )


_cached: WeakValueDictionary[tuple[float, float], CachedOutputs] = WeakValueDictionary()
_evaluated: OrderedDict[float, CachedOutputs] = OrderedDict()


def publish_outputs(
    value: np.ndarray, checksum: float, fingerprint: float, outputs: np.ndarray
) -> CachedOutputs:
    """Cache the outputs of a value for as long as the result is kept."""
    cached = CachedOutputs(value, checksum, fingerprint, outputs)
    _cached[float(checksum), float(fingerprint)] = cached
    return cached


def cache_evaluated(
    value: np.ndarray, checksum: float, fingerprint: float, outputs: np.ndarray
) -> None:
    """Cache the outputs of a value until another value of its declaration is evaluated."""
    _evaluated.pop(fingerprint, None)
    _evaluated[fingerprint] = publish_outputs(value, checksum, fingerprint, outputs.copy())
    while len(_evaluated) > MAX_EVALUATED:
        _evaluated.popitem(last=False)


def cached_outputs(value: np.ndarray, checksum: float, fingerprint: float) -> np.ndarray | None:
    """(n, K) cached outputs of a value, read-only; None without an entry."""
    cached = _cached.get((float(checksum), float(fingerprint)))
    return cached.outputs if cached is not None and np.array_equal(cached.value, value) else None


TABLE = types.ExternalFunction("pymc_trees.core.value.output_cache.table", types.voidptr())
"""Address of the table, for compiled code; call `link_table` first."""


@functools.cache
def link_table() -> types.ExternalFunction:
    """Make the table of this process visible to compiled code, whichever process made that."""
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
    """Write the cached outputs of a value; False without an entry.

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
        cached = carray(_pointer(table[slot, _VALUE]), (bits.size,), np.int64)
        differ = np.int64(0)
        for k in range(bits.size):
            differ |= bits[k] ^ cached[k]
        if differ == 0:
            outputs = carray(_pointer(table[slot, _OUTPUTS]), (flat.size,), np.float64)
            for k in range(flat.size):
                flat[k] = outputs[k]
            return True
    return False
