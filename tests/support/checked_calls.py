"""Compiled kernels are called with arguments of the types that they were compiled for.

`DirectCalls` leaves that unchecked, for speed. Here calls are checked, but for what does not matter
to compiled code: whether an array may be written to, and whether one that may be strided is. numba
determines types slowly, so that of many calls of a kernel the first and every hundredth are looked
at.
"""

from numba.core import types

from pymc_trees.core.compile.pointer import DirectCalls, Pointer


def serves(compiled, given) -> bool:
    """Whether code for one type can be called with a value of another."""
    if isinstance(compiled, types.Array) and isinstance(given, types.Array):
        alike = (compiled.dtype, compiled.ndim) == (given.dtype, given.ndim)
        return alike and compiled.layout in ("A", given.layout)
    if isinstance(compiled, Pointer) and isinstance(given, Pointer):
        same = compiled.instance_class is given.instance_class
        return same and all(map(serves, compiled.types, given.types))
    if isinstance(compiled, types.BaseTuple) and isinstance(given, types.BaseTuple):
        same = len(compiled.types) == len(given.types)
        return same and all(map(serves, compiled.types, given.types))
    return compiled == given


FIRST, EVERY = 20, 100
"""Calls of a kernel that are checked."""


def check_direct_calls() -> None:
    """Have `DirectCalls` compare types."""
    call = DirectCalls.__call__
    first: dict = {}

    def checked(self, kernel, *arguments):
        known, counts = self._entries.get(kernel), self.__dict__.setdefault("counts", {})
        counts[kernel] = n = counts.get(kernel, 0) + 1
        if known is not None and (n <= FIRST or n % EVERY == 0):
            given = [kernel.typeof_pyval(one) for one in arguments]
            for k, (one, other) in enumerate(zip(first[known], given, strict=True)):
                assert serves(one, other), (
                    f"{kernel.py_func.__name__}: argument {k} was {one}, is {other}"
                )
        result = call(self, kernel, *arguments)
        made = self._entries.get(kernel)
        if known is None and made is not None:
            first.setdefault(made, [kernel.typeof_pyval(one) for one in arguments])
        return result

    DirectCalls.__call__ = checked  # type: ignore[method-assign]
