"""Calls of kernels whose argument types never change: numba need not resolve them each time.

numba determines the type of a named tuple in Python, array by array; for the tuples of a forest
this takes longer than a sweep over a few hundred rows.
"""

from collections.abc import Callable
from typing import Any

from numba import config


class DirectCalls:
    """Compiled code of each kernel for the types of its first call.

    One instance belongs to one forest of a step method, where the argument types of a kernel never
    change.
    """

    def __init__(self):
        self._entries: dict[Any, Callable] = {}

    def __call__(self, kernel, *arguments):
        """Result of a kernel."""
        entry = self._entries.get(kernel)
        if entry is not None:
            return entry(*arguments)
        result = kernel(*arguments)
        compiled = getattr(kernel, "overloads", None)
        if compiled:  # without compilation (NUMBA_DISABLE_JIT) there are none
            types = tuple(kernel.typeof_pyval(a) for a in arguments)
            if types in compiled:
                self._entries[kernel] = compiled[types].entry_point
        return result

    def compile(self, kernel, *arguments):
        """Compile a kernel for the types of some arguments."""
        if not config.DISABLE_JIT:
            kernel.compile(tuple(kernel.typeof_pyval(a) for a in arguments))

    def __reduce__(self):
        """State without the parts that belong to a process."""
        return (DirectCalls, ())
