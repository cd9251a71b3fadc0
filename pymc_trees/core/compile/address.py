"""Kernels that others call by their address, and so are compiled without them.

`address_of` compiles a kernel for some argument types, once in a process, and `call_at` calls it:

    renew = address_of(_renew, (typeof(rng), typeof(rows)))  # in Python
    call_at(renew, (rng, rows), None)                        # in a kernel

The call has numba's own convention, so any type may be passed and exceptions come through. Types
are not checked: those of the call must be those of `address_of`, integers int64 and floats float64.
An address is of no use in another process. Without compilation (NUMBA_DISABLE_JIT) it is the number
of a Python function.
"""

import functools
from collections.abc import Callable

from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from pymc_trees.core.compile.cache import without_wrappers
from pymc_trees.core.compile.compiler import LINKED

_FUNCTIONS: list[Callable] = []
"""Python functions by address, less one; without compilation."""


@functools.cache
def address_of(
    kernel: Callable, args: tuple[types.Type, ...], result: types.Type | None = None
) -> int:
    """Address of the machine code of a kernel for arguments, and a result, of these types."""
    if config.DISABLE_JIT:
        _FUNCTIONS.append(kernel)
        return len(_FUNCTIONS)
    compiled = without_wrappers(kernel)
    compiled.compile(args if result is None else result(*args))
    _KEPT.append(compiled)
    found = compiled.overloads[args]
    return found.library.get_pointer_to_function(found.fndesc.llvm_func_name)


_KEPT: list = []
"""What was compiled, which lasts as long as the process."""


def generate_call(context, builder, address, result, kinds, given):
    """Code that calls the kernel at an address, for arguments and a result of these types."""
    function = context.call_conv.get_function_type(result, kinds)
    kernel = builder.inttoptr(address, function.as_pointer())
    status, found = context.call_conv.call_function(builder, kernel, result, kinds, given)
    with cgutils.if_unlikely(builder, status.is_error):
        context.call_conv.return_status_propagate(builder, status)
    return found


@intrinsic
def _call(typing_context, address, arguments, result):
    """Result of the kernel at an address; ``result`` has its type."""
    kinds = arguments.types

    def generate(context, builder, signature, values):
        given = cgutils.unpack_tuple(builder, values[1])
        return generate_call(context, builder, values[0], result, kinds, given)

    return result(address, arguments, result), generate


def call_at(address, arguments, result):
    """Call the kernel at an address.

    Parameters
    ----------
    address : int
        From `address_of`.
    arguments : tuple
        Of the kernel.
    result
        Any value of the type that it returns.
    """
    return _FUNCTIONS[address - 1](*arguments)


@overload(call_at, jit_options=LINKED)
def _call_at(address, arguments, result):
    return lambda address, arguments, result: _call(address, arguments, result)
