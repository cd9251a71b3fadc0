"""Generic kernels: one name, and one implementation for each type of one of its arguments.

    @generic("leaf")
    def log_marginal(leaf, stats):
        "Log marginal likelihood of a leaf's rows."

    register(NormalData, log_marginal=_log_marginal)

In compiled code numba picks the implementation by the type of the NamedTuple while it compiles the
caller, so kernels stay at module level and their code is cached between sessions; Python picks it
by ``type(x)``. The kernels that implementations of one kind must provide form a NamedTuple, its
contract (`registrar`).
"""

import functools
import inspect
from collections.abc import Callable

import numpy as np
from numba import types
from numba.extending import overload

from pymc_trees.core.compile.linked import LINKED
from pymc_trees.core.compile.pointer import Pointer, by_pointer

_KERNELS: dict[type, dict[str, Callable]] = {}


def register(kind: type, **kernels: Callable) -> None:
    """Register implementations for a type, by the name of the generic kernel."""
    _KERNELS.setdefault(kind, {}).update(kernels)


def registrar(contract: type, *, by_value: bool = False) -> Callable[..., None]:
    """`register` for types that implement a contract.

    Parameters
    ----------
    contract : NamedTuple type
        A field for each kernel. One without a default must be given; None marks a kernel that is
        never called for the type.
    by_value : bool
        Whether kernels make new tuples of the type and take its values as they are, not by pointer.
    """

    def register_all(kind: type, **kernels: Callable) -> None:
        if not by_value and kind not in _KERNELS and getattr(kind, "_fields", ()):
            by_pointer(kind)
        given = contract(**kernels)._asdict()
        register(kind, **{name: kernel for name, kernel in given.items() if kernel is not None})

    return register_all


def kernel_of(kind: type, name: str) -> Callable:
    """Implementation of a generic kernel for a type."""
    try:
        return _KERNELS[kind][name]
    except KeyError:
        raise TypeError(f"{kind.__name__} does not answer {name}.") from None


def generic(argument: str, *, default: Callable | None = None) -> Callable[[Callable], Callable]:
    """Make a function, whose body is its docstring, generic in the type of an argument.

    The arguments of a call are given by position.

    Parameters
    ----------
    argument : str
        Its name.
    default : kernel, optional
        Implementation for types without one of their own.
    """

    def decorate(described):
        name = described.__name__
        place = list(inspect.signature(described).parameters).index(argument)

        @functools.wraps(described)
        def call(*arguments):
            kind = type(arguments[place])
            kernel = _KERNELS.get(kind, {}).get(name) or default or kernel_of(kind, name)
            return kernel(*arguments)

        # The Python function, since calling the compiled one would count references to every array
        # of its arguments once more. numba itself never inlines it: numba 0.68 loses assignments
        # around an inlined overload (tests/laws/test_detailed_balance.py).
        @overload(call, strict=False, jit_options=LINKED)
        def _implementation(*arguments):
            kernel = _KERNELS.get(_class_of(arguments[place]), {}).get(name) or default
            return getattr(kernel, "py_func", kernel)

        return call

    return decorate


def _class_of(kind):
    """Python class of the values of a numba type."""
    if isinstance(kind, types.BaseNamedTuple | Pointer):
        return kind.instance_class
    if isinstance(kind, types.Array):
        return np.ndarray
    return type(None) if isinstance(kind, types.NoneType | types.Omitted) else None
