"""Kernels that other compiled code calls by name.

By default numba copies a callee into its caller and compiles it again, once for each function in
between. A PyTensor graph has two or three functions around each Op, and every model has its own
graphs; these kernels are therefore compiled once, separately.
"""

from collections.abc import Callable

import llvmlite.binding as llvm
from numba import types
from numba.core.ccallback import CFunc
from numba.core.compiler_lock import global_compiler_lock

from pymc_trees.core.compile import depends
from pymc_trees.core.compile.cache import KernelCache, cache_of, describe
from pymc_trees.core.compile.turns import turn


class ExternalCache(KernelCache):
    """Cache of such a kernel."""

    def _modules(self, args):
        return depends.noted_now()


class NamedCache(ExternalCache):
    """Cache of a function whose name identifies its closure."""

    def _index_key(self, sig, codegen):
        return describe(sig), codegen.magic_tuple()


class External:
    """Kernel of pointers and numbers that is called by its symbol name.

    Parameters
    ----------
    function : function
        Takes pointers, 64-bit integers and floats; returns an integer. It must not raise.
    signature : numba signature
        Types of arguments and of the result.
    of : str, optional
        For a function that closes over other kernels: text that identifies these kernels and their
        versions.
    """

    def __init__(self, function: Callable, signature, of: str = "") -> None:
        self.name = ".".join([function.__module__, function.__name__, *([of] if of else [])])
        self._kernel = CFunc(function, (signature.args, signature.return_type), {}, {})
        cache = cache_of(function, of and f".{of}", NamedCache if of else ExternalCache)
        if cache is not None:
            self._kernel._cache = cache
        self._symbol = types.ExternalFunction(self.name, signature)
        self._address = 0

    def __call__(self, *arguments):
        """Call from Python, with addresses for pointers; other threads run meanwhile."""
        self.link()
        return self._kernel.ctypes(*arguments)

    def link(self) -> types.ExternalFunction:
        """Function to call in compiled code; each process must link it before running such code."""
        if not self._address:
            with (
                turn(),
                global_compiler_lock,
                depends.noted(),
            ):  # what is noted is that of one thread
                self._kernel.compile()
            self._address = self._kernel.address
            llvm.add_symbol(self._symbol.symbol, self._address)
        return self._symbol


def external(signature, of: str = "") -> Callable[[Callable], External]:
    """Decorator of kernels that compiled code calls by name."""
    return lambda function: External(function, signature, of)
