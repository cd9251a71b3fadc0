"""C functions of generated code, kept on disk under a key that says what they were generated from.

The code of such a function is made anew in every process, so that numba finds no file whose state
could tell whether what it kept is still right. The key tells: it must name everything that the code
does and that is not in a kernel of this package (`depends`).

Draws are the same whether code is compiled or read. For this the machine code must be whole: numba
leaves functions that are called, and not inlined, to whoever in the process has one of the same
name, so that a process that compiled them separately would run others than one that reads.
"""

import hashlib
import warnings

import numpy as np
from numba.core import sigutils
from numba.core.caching import FunctionCache
from numba.core.ccallback import CFunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.errors import NumbaWarning

from pymc_trees.core.compile import depends
from pymc_trees.core.compile.cache import KernelCache, cache_of, describe


def c_function(function, signature, key: str | None = None, modules: tuple[str, ...] = ()):
    """`numba.cfunc` of a function, read from disk where it was compiled before.

    Parameters
    ----------
    function
        Its ``__module__`` must be that of a module which can be imported.
    signature : numba signature
    key : str, optional
        What the code was generated from. None for a function that is not kept.
    modules : tuple of str
        Modules of this package whose sources the code depends on, beside the kernels that it calls.
    """
    types = sigutils.normalize_signature(signature)
    compiled = CFunc(function, types, locals={}, options={}, pipeline_class=_WholeCompiler)
    if key is not None:
        words = f"{key} numpy {np.__version__}"
        digest = hashlib.sha256(words.encode()).hexdigest()[:32]
        kept = cache_of(c_function, f".{digest}", GeneratedCache)
        if kept is not None:
            kept.words, kept.own = words, frozenset(modules)
            compiled._cache = kept
    with depends.noted():
        compiled.compile()
    return compiled


class _WholeLibrary(JITCodeLibrary):
    """Code that calls no function of another library but those of numba and C."""

    def _optimize_final_module(self):
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage.name == "linkonce_odr":
                function.linkage = "internal"
        super()._optimize_final_module()


class _WholeCompiler(Compiler):
    """numba's compiler with such a library."""

    def __init__(self, typing_context, target_context, library, *others):
        library = _WholeLibrary(target_context.codegen(), "whole")
        library.enable_object_caching()  # or it could not be stored
        super().__init__(typing_context, target_context, library, *others)


class GeneratedCache(KernelCache):
    """Cache of one such function: a pair of files, named by a digest of the key."""

    words = ""
    """The key itself."""
    own: frozenset[str] = frozenset()
    held = None
    """What was read: it owns objects whose addresses are in the code, and numba drops it."""

    def _index_key(self, sig, codegen):
        return describe(sig), codegen.magic_tuple(), self.words

    def load_overload(self, sig, target_context):
        """Cached code, or None; nobody waits for another process that compiles the same."""
        try:
            found = FunctionCache.load_overload(self, sig, target_context)
        except OSError:
            return None
        if found is not None:
            depends.note(self._cache_file.modules)
            self.held = found
        return found

    def save_overload(self, sig, data):
        """Cache the code, unless it has addresses of this process: Ops that call Python."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "(?s).*Cannot cache", NumbaWarning)
            super().save_overload(sig, data)

    def _modules(self, args):
        return self.own | depends.noted_now()
