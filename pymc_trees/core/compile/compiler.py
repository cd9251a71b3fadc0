"""Kernels that allocate no array do not count references.

numba counts a reference to every array of a tuple whenever the tuple is passed on or one of its
fields is read. Each count is a call, which blocks LLVM's optimisations across it; without counting,
a sweep of local moves runs and compiles faster. An array that a kernel has not allocated is kept
alive by the caller, so it need not be counted. Whether a kernel allocates one is inferred from its
types: it only unpacks and builds tuples of arrays, and returns none.
"""

import llvmlite.binding as llvm
from numba import types
from numba.core import ir
from numba.core.caching import CompileResultCacheImpl
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.runtime.context import NRTContext
from numba.core.typed_passes import NativeLowering

_TAKES_APART = {"getattr", "static_getattr", "static_getitem", "build_tuple", "exhaust_iter"}
_PLACES = types.Integer | types.SliceType | types.EllipsisType | types.NoneType


class _Uncounted(Lower):
    """From a kernel's types to LLVM's code."""

    def lower(self):
        """Lowering without reference counts if none are needed."""
        if self._counts():
            return super().lower()
        for block in self.func_ir.blocks.values():
            block.body = [line for line in block.body if not isinstance(line, ir.Del)]
        own, self.context = self.context, self.context.subtarget(enable_nrt=False)
        # Temporaries of an operation are released by the operation itself.
        self.context.__dict__["nrt"] = NRTContext(self.context, True)
        try:
            super().lower()
        finally:
            self.context = own  # the wrapper for Python owns the references that it passes

    def _counts(self):
        if self.generator_info or self._has_count(self.fndesc.restype):
            return True
        lines = (line for block in self.func_ir.blocks.values() for line in block.body)
        return any(isinstance(line, ir.Assign) and self._makes(line) for line in lines)

    def _makes(self, line):
        """Whether an assignment creates, or holds, an object with its own reference count."""
        kind, value = self.fndesc.typemap[line.target.name], line.value
        if not self._has_count(kind) or isinstance(value, ir.Const | ir.Global | ir.FreeVar):
            return False
        if not self._only_arrays(kind):
            return True
        if not isinstance(value, ir.Expr) or value.op in _TAKES_APART:
            return False
        if value.op == "getitem":
            return not _is_place(self.fndesc.typemap[value.index.name])
        if value.op == "call":
            return not isinstance(self.fndesc.typemap[value.func.name], types.NamedTupleClass)
        return True

    def _has_count(self, kind):
        if isinstance(kind, types.Omitted):
            return False
        return self.context.data_model_manager[kind].contains_nrt_meminfo()

    def _only_arrays(self, kind):
        """Arrays, generators, their methods, and tuples of such."""
        if isinstance(kind, types.BaseTuple):
            return all(self._only_arrays(part) for part in kind)
        owners = types.Array | types.NumPyRandomGeneratorType | types.BoundFunction
        return isinstance(kind, owners) or not self._has_count(kind)


def _is_place(kind):
    """Whether indexing an array this way gives a view, not a copy."""
    if isinstance(kind, types.BaseTuple):
        return all(_is_place(part) for part in kind)
    return isinstance(kind, _PLACES)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    _name = "native_lowering_uncounted"
    lowering_class = _Uncounted


class KernelCompiler(Compiler):
    """numba's compiler, with reference counts only where they are needed."""

    def define_pipelines(self):
        """Numba's passes with one of them replaced."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        found = [(_Lowering if one is NativeLowering else one, told) for one, told in passes.passes]
        passes.passes = found
        passes.finalize()
        return [passes]


# ------- Kernels that are called by other kernels only: optimised in their callers, not separately
#
# numba optimises a function together with all its callees and generates machine code for the
# whole, again for each caller; for a kernel that Python never calls, this code is never used.
# Here such a kernel is only compiled to LLVM's intermediate representation. The kernel that
# Python calls is optimised once, with all its callees.


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
