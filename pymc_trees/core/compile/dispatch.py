"""Generic kernels: one name, and one implementation for each type of one of its arguments.

    @generic("leaf")
    def log_marginal(leaf, stats):
        "Log marginal likelihood of a leaf's rows."

    register(NormalData, log_marginal=_log_marginal)

In compiled code numba picks the implementation by the type of the NamedTuple while it compiles the
caller, so kernels stay at module level and their code is cached between sessions; Python picks it
by ``type(x)``. Given a handle (`handle`), the caller is compiled once for all types. The kernels
that implementations of one kind must provide form a NamedTuple, its contract (`registrar`).
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import TypingError, typeof, types
from numba.extending import models, register_model

from pymc_trees.core.compile import depends
from pymc_trees.core.compile.handle import HandleType, key_of_call
from pymc_trees.core.compile.pointer import Pointer, by_pointer

_KERNELS: dict[type, dict[str, Callable]] = {}


def register(kind: type, **kernels: Callable) -> None:
    """Register implementations for a type, by the name of the generic kernel."""
    _KERNELS.setdefault(kind, {}).update(kernels)
    for name, kernel in kernels.items():
        depends.IMPLEMENTATIONS[_choice(kind, name)] = f"{kernel.__module__}.{kernel.__qualname__}"


def _choice(kind, name):
    """Text for the choice of an implementation."""
    return depends.CHOICE + f"{name} of {kind.__module__}.{kind.__qualname__}"


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


def generic(
    argument: str,
    *,
    default: Callable | None = None,
    args: tuple | None = None,
    result: Any = None,
    constant: bool = False,
) -> Callable[[Callable], "Generic"]:
    """Make a function, whose body is its docstring, generic in the type of an argument.

    The arguments of a call are given by position.

    Parameters
    ----------
    argument : str
        Its name.
    default : kernel, optional
        Implementation for types without one of their own.
    args : tuple, optional
        What each argument is, for calls by address (`handle`): a type of numba, a class whose type
        belongs to the forest, or a `Role`.
    result : optional
        What is returned, in the same terms.
    constant : bool
        Whether that is one number for a named tuple, so that a handle has it in place of an
        address. The named tuple must be the only argument.
    """
    return lambda described: Generic(described, argument, default, args, result, constant)


class Generic:
    """A generic kernel, called like a function from Python and from compiled code."""

    def __init__(self, described: Callable, argument: str, default, args, result, constant) -> None:
        functools.update_wrapper(self, described)
        parameters = list(inspect.signature(described).parameters)
        if args is not None and len(args) != len(parameters):
            raise TypeError(f"{described.__name__}: {len(args)} types for {len(parameters)} names.")
        self.place = parameters.index(argument)
        self._default, self.args, self.result, self.constant = default, args, result, constant
        self._numba_type_ = GenericType(self)

    def __call__(self, *arguments):
        """Result of the implementation."""
        return self.kernel(type(arguments[self.place]))(*arguments)

    def kernel(self, kind: type) -> Callable:
        """Implementation for a type."""
        name = self.__name__
        return _KERNELS.get(kind, {}).get(name) or self._default or kernel_of(kind, name)

    def is_answered_by(self, kind: type) -> bool:
        """Whether there is an implementation for a type; one that is never called has none."""
        return self._default is not None or self.__name__ in _KERNELS.get(kind, {})

    def handle(self, arguments: tuple[types.Type, ...]) -> HandleType | None:
        """Type of the main argument, among arguments of these numba types, if it is a handle."""
        given = arguments[self.place]
        return given if isinstance(given, HandleType) else None

    def compiled(self, arguments: tuple[types.Type, ...]) -> types.Dispatcher:
        """Implementation, as numba has it, for arguments of these numba types."""
        given = arguments[self.place]
        kind = _class_of(given)
        try:
            kernel = self.kernel(kind)
        except TypeError:
            raise TypingError(f"{given} does not answer {self.__name__}.") from None
        depends.note({kernel.__module__, _choice(kind, self.__name__)})
        return typeof(kernel)


class GenericType(types.Callable, types.Dummy):
    """numba's type of a generic kernel: a call is one of the implementation."""

    def __init__(self, generic: Generic) -> None:
        self._generic = generic
        super().__init__(f"generic {generic.__module__}.{generic.__qualname__}")

    def get_call_type(self, context, args, kws):
        """Signature of the implementation."""
        handle = self._generic.handle(args)
        if handle is not None:
            return handle.signature(self._generic, args)
        return self._generic.compiled(args).get_call_type(context, args, kws)

    def get_call_signatures(self):
        """None is listed."""
        return (), True

    def get_impl_key(self, sig):
        """That of the implementation."""
        if self._generic.handle(sig.args) is not None:
            return key_of_call(self._generic, self._generic.place, sig)
        return self._generic.compiled(sig.args).get_impl_key(sig)


register_model(GenericType)(models.OpaqueModel)


def _class_of(kind: types.Type) -> type:
    """Python class of the values of a numba type; `object` of types without kernels."""
    if isinstance(kind, types.BaseNamedTuple | Pointer):
        return kind.instance_class
    if isinstance(kind, types.Array):
        return np.ndarray
    if isinstance(kind, types.BaseTuple):
        return tuple
    return type(None) if isinstance(kind, types.NoneType | types.Omitted) else object
