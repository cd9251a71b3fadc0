"""PyTensor graphs as native functions that compiled kernels call, one for each model.

A kernel receives only the address of such a function, so it need not be compiled for each model.
The function has the C signature

    int64 f(int64 u, int64* rows, double* outputs, int64* table, double* data, double* result)

and writes ``width`` numbers for each of the u rows asked for; it returns 1, or 0 after an
exception, which Python reports by itself. ``data`` has the values of everything that does not
depend on the forest, ``table`` their positions (`UnitData`).
"""

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytensor
from numba import carray, from_dtype
from pytensor.graph.basic import Variable
from pytensor.link.numba.cache import CACHED_SRC_FUNCTIONS
from pytensor.link.numba.dispatch.basic import (
    numba_funcify_and_cache_key,
    numba_njit,
    register_funcify_and_cache_key,
)
from pytensor.scalar.basic import ScalarOp
from pytensor.scalar.math import PolyGamma, TriGamma

from pymc_trees.core.compile.generated import c_function
from pymc_trees.core.compile.polygamma import polygamma
from pymc_trees.core.leaves.nonconjugate.native import SIGNATURE

IN_PYTHON = re.compile("object mode to run (.*)'s perform")
"""PyTensor's message on an Op."""


class Group(NamedTuple):
    """Likelihood of units, as graphs."""

    outputs: Variable
    rows: Variable
    units: Variable
    free: list[Variable]
    row_of: Variable | None
    """Row of each unit, an expression; None where units are rows."""


class UnitData(NamedTuple):
    """Numbers of a point, as native functions read them."""

    table: np.ndarray
    """int64: size of ``data``; start, stop and shape of each free array; then for each group with
    an index: place of its row pointers and of its units, ended by those."""
    data: np.ndarray
    """float64: free arrays, one after another."""
    of_leaves: tuple = ()
    """What the leaves take of a point (`leaf_rows`)."""


def pack(free: list[np.ndarray], units_of: list[tuple[np.ndarray, np.ndarray]]) -> UnitData:
    """Numbers of a point.

    Parameters
    ----------
    free : list of arrays of at least one dimension
        Free arrays of all groups.
    units_of : list of (pointers, units)
        For each group with an index: ``units[pointers[i]:pointers[i + 1]]`` are those of row i.
    """
    head = [sum(a.size for a in free)]
    start = 0
    for a in free:
        head += [start, start + a.size, *a.shape]
        start += a.size
    place = len(head) + 2 * len(units_of)
    tail = []
    for pointers, units in units_of:
        head += [place, place + pointers.size]
        place += pointers.size + units.size
        tail += [pointers, units]
    table = np.concatenate([np.array(head, dtype=np.int64), *tail]).astype(np.int64)
    data = np.concatenate([np.ravel(a) for a in free]) if free else np.zeros(1)
    return UnitData(table, np.ascontiguousarray(data, dtype=np.float64))


def read_free(free: list[Variable], at: int) -> tuple[list[str], int]:
    """Source code of the free arrays whose entries of the table begin at ``at``, and their end."""
    arrays = []
    for variable in free:
        shape = "".join(f"table[{at + 2 + d}], " for d in range(variable.ndim))
        arrays.append(f"data[table[{at}]:table[{at + 1}]].reshape(({shape}))")
        at += 2 + variable.ndim
    return arrays, at


def first_that_compiles(compile_one: Callable, choices: list):
    """Result of ``compile_one`` for the first of the choices that compiles.

    Whether an Op has compiled code is only known at compilation, which may raise any exception.
    """
    *others, last = choices
    for choice in others:
        try:
            return compile_one(choice)
        except Exception:
            continue
    return compile_one(last)


def compile_graph(inputs: list[Variable], result: Variable):
    """Compiled function of arrays; a warning names its Ops without compiled code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function = pytensor.function(
            inputs, [result], mode="NUMBA", on_unused_input="ignore", trust_input=True
        )
    slow = set()
    for warning in caught:
        by_python = IN_PYTHON.search(str(warning.message))
        if by_python:
            slow.add(by_python[1])
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    if slow:
        warnings.warn(
            f"The likelihood of a forest uses {', '.join(sorted(slow))}, for which PyTensor has "
            "no compiled code: Python is called for each number, which is a thousand times "
            "slower.",
            UserWarning,
            stacklevel=2,
        )
    return function.vm.jit_fn


def compile_source(source: str, graphs: dict[str, Any]):
    """C function of the source of ``evaluate``, which calls compiled graphs by name.

    It is kept on disk under the source and PyTensor's keys of the graphs. A graph has none if an
    Op in it has none: one of a user's own, say, whose code may change.
    """
    keys = [CACHED_SRC_FUNCTIONS.get(graph.py_func) for graph in graphs.values()]
    names = {"np": np, "carray": carray, "__name__": __name__, **graphs}
    exec(compile(source, "<likelihood of a forest>", "exec"), names)
    key = None
    if all(keys):
        key = "\n".join([f"pytensor {pytensor.__version__}", *graphs, *map(str, keys), source])
    return c_function(names["evaluate"], SIGNATURE, key, (__name__,))


class LazilyCompiled:
    """A native function that is compiled when its address is first asked for.

    It is the first of its ``choices`` that `_compile` can compile.
    """

    choices: list
    _compiled: Any = None

    @property
    def address(self) -> int:
        """Address of the compiled function."""
        if self._compiled is None:
            self._compiled = first_that_compiles(self._compile, self.choices)
        return self._compiled.address

    def __getstate__(self):
        """State without the compiled function, which belongs to one process."""
        return {**self.__dict__, "_compiled": None}

    def _compile(self, choice):
        raise NotImplementedError


@dataclass
class NativeFunction(LazilyCompiled):
    """A native function of several groups of units; compiled when its address is first asked for.

    Parameters
    ----------
    groups : list of Group
        Groups of units; the numbers of the units of a row are added up.
    choices : list of lists of (u, width) variables
        What to compute of each group; the first list that can be compiled.
    n_values, width : int
        Outputs and results per row.
    """

    groups: list[Group]
    choices: list[list[Variable]]
    n_values: int
    width: int

    def _compile(self, results):
        graphs = {}
        for g, (group, result) in enumerate(zip(self.groups, results, strict=True)):
            inputs = [group.outputs, group.rows, group.units, *group.free]
            graphs[f"group_{g}"] = compile_graph(inputs, result)
        return compile_source(self._source(), graphs)

    def _source(self) -> str:
        width, n_values = self.width, self.n_values
        lines = [
            "def evaluate(n, rows, outputs, table, data, result):",
            "    rows = carray(rows, (n,), np.int64)",
            f"    outputs = carray(outputs, (n, {n_values}), np.float64)",
            f"    result = carray(result, (n, {width}), np.float64)",
            # carray needs a size; every access is within it
            "    table = carray(table, (1 << 40,), np.int64)",
            "    data = carray(data, (table[0],), np.float64)",
            "    result[:] = 0.0",
        ]
        at, arguments = 1, []
        for group in self.groups:
            own, at = read_free(group.free, at)
            arguments.append(own)
        for g, (group, own) in enumerate(zip(self.groups, arguments, strict=True)):
            if group.row_of is None:
                inputs = ", ".join(["outputs", "rows", "rows", *own])
                lines += [
                    f"    values = group_{g}({inputs})[0]",
                    "    for i in range(n):",
                    f"        for j in range({width}):",
                    "            result[i, j] += values[i, j]",
                ]
                continue
            inputs = ", ".join(["their_outputs", "their_rows", "units", *own])
            lines += [
                f"    pointers, members = table[{at}], table[{at + 1}]",
                *_UNITS.format(n_values=n_values).splitlines(),
                f"    values = group_{g}({inputs})[0]",
                "    for u in range(total):",
                f"        for j in range({width}):",
                "            result[owner[u], j] += values[u, j]",
            ]
            at += 2
        # No try: numba's leaves Python's error set after an exception of an Op in object mode.
        return "\n".join([*lines, "    return 1"])


_UNITS = """\
    total = 0
    for i in range(n):
        total += table[pointers + rows[i] + 1] - table[pointers + rows[i]]
    units = np.empty(total, dtype=np.int64)
    owner = np.empty(total, dtype=np.int64)
    their_rows = np.empty(total, dtype=np.int64)
    their_outputs = np.empty((total, {n_values}))
    u = 0
    for i in range(n):
        for k in range(table[pointers + rows[i]], table[pointers + rows[i] + 1]):
            units[u] = table[members + k]
            owner[u] = i
            their_rows[u] = rows[i]
            their_outputs[u] = outputs[i]
            u += 1
"""


# ----------------- Special functions without compiled code in PyTensor, added to its Numba backend
#
# Without them a likelihood's derivatives would call SciPy for one number at a time. Only Ops
# without code of their own are extended.


_VERSION = 2


def _trigamma(op, node, **kwargs):
    derivative, (kind, key) = numba_njit(polygamma.py_func), _result(node)

    @numba_njit
    def trigamma(x):
        return kind(derivative(1, x))

    return trigamma, f"pymc_trees.trigamma.{key}"


def _polygamma(op, node, **kwargs):
    derivative, (kind, key) = numba_njit(polygamma.py_func), _result(node)

    @numba_njit
    def function(n, x):
        return kind(derivative(n, x))

    return function, f"pymc_trees.polygamma.{key}"


def _result(node):
    """Type of the result, which PyTensor does not cast in scalar graphs, and the end of a key."""
    dtype = node.outputs[0].type.dtype
    return from_dtype(np.dtype(dtype)), f"{dtype}.{_VERSION}"


def register_special() -> None:
    """Register code for the Ops."""
    dispatch = numba_funcify_and_cache_key.dispatch
    for op, code in ((TriGamma, _trigamma), (PolyGamma, _polygamma)):
        if dispatch(op) is dispatch(ScalarOp):
            register_funcify_and_cache_key(op)(code)


register_special()
