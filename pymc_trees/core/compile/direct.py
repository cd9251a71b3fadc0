"""Calls of kernels whose arguments keep their types: numba need not find them out each time.

numba reads the type of a named tuple in Python, array by array: for those of a forest that takes
longer than a sweep over a few hundred rows.
"""

from collections.abc import Callable
from typing import Any


class DirectCalls:
    """What each kernel was compiled to for the types that it was first called with.

    One instance belongs to one forest of a step: there the arguments of a kernel never change type.
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
        if compiled:  # not without compilation, for which numba has a switch
            types = tuple(kernel.typeof_pyval(a) for a in arguments)
            if types in compiled:
                self._entries[kernel] = compiled[types].entry_point
        return result

    def __reduce__(self):
        """Without what belongs to a process."""
        return (DirectCalls, ())
