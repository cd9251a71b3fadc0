"""Kernels that other compiled code calls by name.

What compiled code calls otherwise is copied into it, optimised and turned into machine code again,
once for each function in between. A PyTensor graph is two or three functions around each Op, and
every model has graphs of its own; so what they call is compiled once, for itself.
"""

from collections.abc import Callable

import llvmlite.binding as llvm
from numba import types
from numba.core.ccallback import CFunc

from pymc_trees.core.compile.cache import KernelCache, cache_of, describe


class NamedCache(KernelCache):
    """Cache of a function whose name stands for what it closes over."""

    def _index_key(self, sig, codegen):
        return describe(sig), codegen.magic_tuple()


class External:
    """A kernel of pointers and numbers that is called by the name of its symbol.

    Parameters
    ----------
    function : function
        Takes pointers, 64-bit integers and floats; returns an integer. It lets no exception out.
    signature : numba signature
        Types of arguments and of the result.
    of : str, optional
        For a function that closes over other kernels: what tells it from its like, and from what
        it was before they were edited.
    """

    def __init__(self, function: Callable, signature, of: str = "") -> None:
        self.name = ".".join([function.__module__, function.__name__, *([of] if of else [])])
        self._kernel = CFunc(function, (signature.args, signature.return_type), {}, {})
        self._kernel._cache = cache_of(function, of and f".{of}", NamedCache if of else None)
        self._symbol = types.ExternalFunction(self.name, signature)
        self._address = 0

    def link(self) -> types.ExternalFunction:
        """Function to call in compiled code; every process that runs such code links it first."""
        if not self._address:
            self._kernel.compile()
            self._address = self._kernel.address
            llvm.add_symbol(self._symbol.symbol, self._address)
        return self._symbol


def external(signature, of: str = "") -> Callable[[Callable], External]:
    """Decorate a kernel that compiled code calls by name."""
    return lambda function: External(function, signature, of)
