"""The function of x of an encoded forest."""

import functools
from collections import OrderedDict
from typing import NamedTuple
from weakref import WeakValueDictionary

import llvmlite.binding as llvm
import numpy as np
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

from pymc_trees.core.columns.cells import LEFT, MISSING, SET
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.leaves.contract import add_outputs, n_outputs
from pymc_trees.core.value.fields import is_intact


@njit(cache=True)
def same_content(a, b):
    """Whether two contiguous arrays have the same bits; immediate if they are the same memory."""
    if a.shape != b.shape:
        return False
    if a.ctypes.data == b.ctypes.data:
        return True
    bits_a, bits_b = a.reshape(-1).view(np.uint64), b.reshape(-1).view(np.uint64)
    start = 0
    while start < bits_a.size:  # by blocks: vectorised inside, an early end between
        stop = min(start + 4096, bits_a.size)
        different = np.uint64(0)
        for k in range(start, stop):
            different |= bits_a[k] ^ bits_b[k]
        if different != 0:
            return False
        start = stop
    return True


@njit(cache=True)
def evaluate(value, X, X_train, leaf, sizes, fingerprint):
    """Outputs of a forest at the rows of ``X``, shape (rows of X, K).

    NaN everywhere when the value is not an intact forest of this design.

    Parameters
    ----------
    leaf : leaf model
        Its type determines the output of a leaf (`core.leaves.contract.leaf_output`), its data are
        those at the rows of ``X``: `core.leaves.contract.ConstantLeaf` for leaves without any.
    """
    out = np.empty((X.shape[0], n_outputs(leaf, sizes.n_values)))
    check_columns(X, X_train)
    if not is_intact(value, sizes.max_nodes, fingerprint):
        out[:] = np.nan
    else:
        walk_trees(value, X, X_train, leaf, sizes, out)
    return out


@njit(cache=True)
def check_columns(X, X_train):
    """Raise an error unless rows have the columns of the training rows."""
    if X.shape[1] != X_train.shape[1]:
        raise ValueError(
            "X has another number of columns than the X the forest was declared with: "
            "give it the same columns in the same order."
        )


@njit(cache=True)
def walk_trees(value, X, X_train, leaf, sizes, out):
    """Write the outputs of an intact value by sending each row through each tree."""
    any_missing = False
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            any_missing |= is_missing(X[i, j])
            if np.isinf(X[i, j]):
                raise ValueError(
                    "X holds infinite values: remove those rows before predicting, or put NaN for "
                    "a missing cell."
                )
    links = links_of(value, sizes)
    rules = rules_of(value, X, X_train, sizes, links.column)
    values, leaf_of = value[:, 1 : 1 + sizes.n_values].copy(), np.empty(len(X), dtype=np.uint32)
    out[:] = 0.0
    for t in range(sizes.m):
        if sizes.mixed or any_missing:
            _walk_mixed(value, X, links, rules, t, leaf_of)
        else:
            _walk(value, X, links, t, leaf_of)
        add_outputs(leaf, values, leaf_of, out)


@njit(cache=True)
def is_missing(x):
    """Whether a cell of X is missing."""
    return x == MISSING or x != x


@njit(cache=True)
def nan_for_missing(X):
    """Copy of X with NaN in every missing cell, as used by leaves."""
    out = X.copy()
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            if is_missing(X[i, j]):
                out[i, j] = np.nan
    return out


@njit(cache=True)
def _hashed_side(value, sizes, row):
    """Side, fixed by a hash of the node, for missing cells that its rule does not cover."""
    state = np.uint64(value[sizes.max_nodes, 0]) + np.uint64(row) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (state >> np.uint64(63)) == np.uint64(1)


@by_pointer
class Links(NamedTuple):
    """Links between the preorder rows of a value."""

    column: np.ndarray
    """(max_nodes,) int32: field 0 of a split node; -1 elsewhere."""
    right: np.ndarray
    """(max_nodes,) int32: right child of a split node; the left one is the next row."""
    roots: np.ndarray
    """(m,) int32: root of each tree."""


@njit(cache=True)
def _walk(value, X, links, tree, leaf_of):
    """Write the leaf of each row of X in a tree."""
    column, right, root = links.column, links.right, links.roots[tree]
    for i in range(X.shape[0]):
        k = root
        while column[k] >= 0:
            k = k + 1 if X[i, column[k]] <= value[k, 1] else right[k]
        leaf_of[i] = k


@by_pointer
class MixedRules(NamedTuple):
    """Rules of nodes if cells may be levels or missing."""

    missing_left: np.ndarray
    """(max_nodes,) bool: missing cells go left."""
    levels: np.ndarray
    """(max_nodes,) int64: set of the levels that go left; -1 where there is a cut."""
    n_levels: np.ndarray
    """(p,) float64: levels of each column that is split by them."""


@njit(cache=True)
def rules_of(value, X, X_train, sizes, column):
    """Rules of all nodes; ``column`` is reduced to the column.

    A level that no training row had counts as missing. A forest without missing training cells has
    no sides in its rules: a random side of each node is used.
    """
    p = X.shape[1]
    n_levels = np.zeros(p)
    missing_left = np.zeros(sizes.max_nodes, dtype=np.bool_)
    levels = np.full(sizes.max_nodes, np.int64(-1))
    for k in range(sizes.max_nodes):
        if column[k] < 0:
            continue
        rule_kind = column[k] // p
        column[k] %= p
        missing_left[k] = (rule_kind & LEFT) != 0 if sizes.mixed else _hashed_side(value, sizes, k)
        if rule_kind >= SET:
            levels[k] = np.int64(value[k, 1])
            if n_levels[column[k]] == 0.0:
                n_levels[column[k]] = 1.0 + X_train[:, column[k]].max()
    for j in range(p):
        if n_levels[j] > 0.0:
            for i in range(X.shape[0]):
                x = X[i, j]
                if not is_missing(x) and not (x >= 0.0 and x == np.floor(x)):
                    raise ValueError(
                        "X holds something other than level numbers 0, 1, .. in a column that is "
                        "split by levels: set new data with pymc_trees.set_data."
                    )
    return MixedRules(missing_left, levels, n_levels)


@njit(cache=True)
def _walk_mixed(value, X, links, rules, tree, leaf_of):
    """`_walk` if cells may be levels or missing."""
    column, right, root = links.column, links.right, links.roots[tree]
    for i in range(X.shape[0]):
        k = root
        while column[k] >= 0:
            left = goes_left(X[i, column[k]], value[k, 1], rules, k, column[k])
            k = k + 1 if left else right[k]
        leaf_of[i] = k


@njit(cache=True)
def goes_left(x, cut, rules, k, column):
    """Whether a cell of the column of split node k goes left there."""
    levels = rules.levels[k]
    if is_missing(x) or (levels >= 0 and x >= rules.n_levels[column]):
        return rules.missing_left[k]
    if levels >= 0:
        return (levels >> np.int64(x)) & 1 == 1
    return x <= cut


@njit(cache=True)
def links_of(value, sizes):
    """Links of the preorder rows."""
    column = np.full(sizes.max_nodes, np.int32(-1))
    right = np.empty(sizes.max_nodes, dtype=np.int32)
    roots = np.empty(sizes.m, dtype=np.int32)
    waiting = np.empty(sizes.max_nodes, dtype=np.int32)  # splits without their right child
    row = 0
    for t in range(sizes.m):
        roots[t] = row
        height = 0
        while True:
            column[row] = int(value[row, 0])
            row += 1
            if column[row - 1] >= 0:
                waiting[height] = row - 1
                height += 1
            elif height > 0:
                height -= 1
                right[waiting[height]] = row
            else:
                break
    return Links(column, right, roots)


# ------------------ The function of an encoded forest at rows of which only some columns are known
#
# At a split on a column that is not known both branches are followed, weighted by the shares of
# the training rows in the node that go there. The output of a tree is the weighted sum over the
# leaves that are reached.


@njit(cache=True, nogil=True)
def marginal(value, X, X_train, sizes, known):
    """Values of the leaves, summed over the trees, at the rows of X: (S, n, V).

    Parameters
    ----------
    value : (rows, fields) float64
        An intact encoded forest.
    X_train : (n_rows, p) float64
        Rows that the forest was declared with.
    known : (S, p) bool
        Which columns are known, for each of S results.
    """
    links = links_of(value, sizes)
    rules = rules_of(value, X, X_train, sizes, links.column)
    share = left_shares(value, X_train, links, rules, sizes)
    outputs = np.zeros((known.shape[0], X.shape[0], sizes.n_values))
    waiting = np.empty(sizes.max_nodes, dtype=np.int64)
    weights = np.empty(sizes.max_nodes)
    for s in range(known.shape[0]):
        for t in range(sizes.m):
            for i in range(X.shape[0]):
                waiting[0], weights[0] = links.roots[t], 1.0
                height = 1
                while height > 0:
                    height -= 1
                    k, weight = waiting[height], weights[height]
                    while links.column[k] >= 0:
                        column = links.column[k]
                        if known[s, column]:
                            left = goes_left(X[i, column], value[k, 1], rules, k, column)
                            k = k + 1 if left else links.right[k]
                            continue
                        waiting[height] = links.right[k]
                        weights[height] = weight * (1.0 - share[k])
                        height += 1
                        weight *= share[k]
                        k += 1
                    for v in range(sizes.n_values):
                        outputs[s, i, v] += weight * value[k, 1 + v]
    return outputs


@njit(cache=True)
def left_shares(value, X_train, links, rules, sizes):
    """(max_nodes,) share of the training rows in each split node that go left; 0 elsewhere."""
    rows, left = np.zeros(sizes.max_nodes), np.zeros(sizes.max_nodes)
    for t in range(sizes.m):
        for i in range(X_train.shape[0]):
            k = links.roots[t]
            while links.column[k] >= 0:
                column = links.column[k]
                rows[k] += 1.0
                if goes_left(X_train[i, column], value[k, 1], rules, k, column):
                    left[k] += 1.0
                    k += 1
                else:
                    k = links.right[k]
    return left / np.maximum(rows, 1.0)


# --------- Outputs at the training rows, cached for as long as a step holds the value of its forest
#
# A step that has moved a forest has added up its trees; recording the function, or reading it in
# a log density, then needs no further walk through them. A `CachedOutputs` keeps its entry alive.
# A value is compared entry by entry, together with the fingerprint of its declaration, so that a
# hit is the function of exactly this forest at exactly these rows. Where columns of X are random,
# rows are where the point has them: an entry holds these, too, and they are compared likewise.
#
# Compiled graphs read a table in memory, without a call into Python, where an interrupt would be
# lost. They hold Python's global lock while they read, and the table changes under the same lock.


SLOTS = 64
"""Entries that compiled code can find at once."""
MAX_EVALUATED = 4
"""Declarations whose last evaluation is kept, for graphs that read a forest no step moves."""

_N_FIELDS = 8
_TABLE = np.zeros((SLOTS, _N_FIELDS), dtype=np.int64)
"""Bits of checksum and fingerprint, size and address of the value, those of the function and those
of its rows, whose size is 0 for the training rows."""
_CHECKSUM, _FINGERPRINT, _SIZE, _VALUE, _N_NUMBERS, _OUTPUTS, _N_CELLS, _CELLS = range(_N_FIELDS)
_free = list(range(SLOTS))


class CachedOutputs:
    """Outputs of a value at the training rows, or at other ones.

    Parameters
    ----------
    value : (rows, fields) float64
        An encoded forest.
    checksum, fingerprint : float
        Of the value and of its declaration, which includes the training rows.
    outputs : (n, K) float64
        Sum of the outputs of its trees; read-only.
    X : (n, p) float64, optional
        The rows; read-only.
    """

    def __init__(
        self,
        value: np.ndarray,
        checksum: float,
        fingerprint: float,
        outputs: np.ndarray,
        X: np.ndarray | None = None,
    ):
        self.value, self.outputs = value.copy(), np.ascontiguousarray(outputs)
        self.X = np.empty(0) if X is None else np.ascontiguousarray(X)
        self._slot = _free.pop() if _free else None
        if self._slot is not None:
            numbers = np.array([checksum, fingerprint]).view(np.int64)
            arrays = self.value, self.outputs, self.X
            places = [number for a in arrays for number in (a.size, a.ctypes.data)]
            _TABLE[self._slot] = [*numbers, *places]

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


TABLE = types.ExternalFunction("pymc_trees.core.value.evaluate.table", types.voidptr())
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
def look_up(table, value, checksum, fingerprint, X, out):
    """Write the cached outputs of a value; False without an entry.

    Parameters
    ----------
    table : pointer
        What `TABLE` returned.
    value, out : float64 arrays
        Contiguous.
    X : float64 array
        Contiguous: the rows; without any for the training rows.
    """
    table = carray(table, (SLOTS, _N_FIELDS), np.int64)
    bits, flat = value.reshape(-1).view(np.int64), out.reshape(-1)
    cells = X.reshape(-1).view(np.int64)
    ids = np.array([checksum, fingerprint]).view(np.int64)
    for slot in range(SLOTS):
        if (
            table[slot, _CHECKSUM] != ids[0]
            or table[slot, _FINGERPRINT] != ids[1]
            or table[slot, _SIZE] != bits.size
            or table[slot, _N_NUMBERS] != flat.size
            or table[slot, _N_CELLS] != cells.size
        ):
            continue
        cached = carray(_pointer(table[slot, _VALUE]), (bits.size,), np.int64)
        differ = np.int64(0)
        for k in range(bits.size):
            differ |= bits[k] ^ cached[k]
        rows = carray(_pointer(table[slot, _CELLS]), (cells.size,), np.int64)
        for k in range(cells.size):
            differ |= cells[k] ^ rows[k]
        if differ == 0:
            outputs = carray(_pointer(table[slot, _OUTPUTS]), (flat.size,), np.float64)
            for k in range(flat.size):
                flat[k] = outputs[k]
            return True
    return False
