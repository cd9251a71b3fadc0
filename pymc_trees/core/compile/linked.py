"""Kernels that are called by other kernels only: optimised in their callers, not separately.

numba optimises a function together with all its callees and generates machine code for the whole,
again for each caller; for a kernel that Python never calls, this code is never used. Here such a
kernel is only compiled to LLVM's intermediate representation. The kernel that Python calls is
optimised once, with all its callees.
"""

import llvmlite.binding as llvm
from numba.core.caching import CompileResultCacheImpl
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult

from pymc_trees.core.compile.uncounted import KernelCompiler


class LinkedLibrary(JITCodeLibrary):
    """Code that is never run by itself."""

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    @property
    def codegen(self):
        """Library without an execution engine, and so without an environment to set."""
        return _NoEngine

    def get_pointer_to_function(self, name):
        """Null: there is no machine code."""
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self):
        """Data stored on disk: the intermediate representation."""
        return self.serialize_using_bitcode()


class _NoEngine:
    @staticmethod
    def set_env(name, environment):
        """Nothing to set."""


class LinkedCompiler(KernelCompiler):
    """A compiler with a `LinkedLibrary` for the code."""

    def __init__(self, typing_context, target_context, library, *others):
        library = LinkedLibrary(target_context.codegen(), "linked")
        super().__init__(typing_context, target_context, library, *others)


class LinkedCache(CompileResultCacheImpl):
    """Loads such kernels from disk."""

    def rebuild(self, target_context, payload):
        """Compiled kernel from the output of `CompileResult._reduce`."""
        (name, _, bitcode), descriptor, environment, signature, _, _, _, initialise, _ = payload
        for function in initialise:
            function()
        library = LinkedLibrary(target_context.codegen(), name)
        library._final_module = llvm.parse_bitcode(bitcode)
        library._finalize_final_module()
        found = dict.fromkeys(CompileResult._fields)
        if hasattr(library, "_reload_init"):
            library._reload_init.update(initialise)
        else:  # numba 0.61
            found["reload_init"] = initialise
        found |= {"target_context": target_context, "typing_context": target_context.typing_context}
        found |= {"library": library, "fndesc": descriptor, "environment": environment}
        found |= {"signature": signature, "objectmode": False, "lifted": ()}
        found["entry_point"] = target_context.get_executable(library, descriptor, environment)
        return CompileResult(**found)


LINKED = {
    "pipeline_class": LinkedCompiler,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    # Unset, these are those of the caller that compiles a kernel first, in this process or in
    # another; PyTensor's graphs let sums be reordered.
    "fastmath": False,
    "error_model": "python",
    "forceinline": False,
}
"""Options of numba's `njit` and `overload` for kernels that only other kernels call."""
