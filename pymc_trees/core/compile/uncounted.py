"""Kernels that count no references: they make no array and return none.

Compiled code counts references to every array of a tuple whenever the tuple is passed on or one of
its fields is read. That is a call, across which LLVM keeps nothing it knows: without counting, a
sweep of local moves takes half the time. An array that a kernel has not made is kept alive by
whoever called it, so that there is nothing to count.
"""

import re

import llvmlite.binding as llvm
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

_COUNT = re.compile(r"\s*(tail )?call void @NRT_(inc|dec)ref\(")
_MAKE = re.compile(r"call .*@NRT_(MemInfo_\w*alloc|Allocate)")
_NAME = re.compile(r'define [^@]*@"?([^"(]*)')
_NOT_KERNELS = ("_ZN7cpython", "cfunc.", "NRT_")


def without_counts(code: str) -> str:
    """LLVM's code of a kernel and all that it calls, without references counted.

    As it was where one of them makes an array, as a leaf model of a user may. The wrapper for
    Python goes on counting: it owns what it hands over.
    """
    kept, is_kernel = [], False
    for line in code.splitlines():
        if line.startswith("define"):
            is_kernel = not _NAME.match(line)[1].startswith(_NOT_KERNELS)
        elif is_kernel:
            if _COUNT.match(line):
                continue
            if _MAKE.search(line):
                return code
        kept.append(line)
    return "\n".join(kept)


class UncountedLibrary(JITCodeLibrary):
    """Code of a kernel that Python calls."""

    def _optimize_final_module(self):
        self._final_module = llvm.parse_assembly(without_counts(str(self._final_module)))
        super()._optimize_final_module()


class UncountedCompiler(Compiler):
    """numba's compiler, with an `UncountedLibrary` for the code."""

    def __init__(self, typing_context, target_context, library, *others):
        library = UncountedLibrary(target_context.codegen(), "uncounted")
        library.enable_object_caching()
        super().__init__(typing_context, target_context, library, *others)

    def compile_extra(self, function):
        """Compiled kernel.

        Raises
        ------
        TypeError
            Where it returns anything but numbers.
        """
        result = super().compile_extra(function)
        returned = result.signature.return_type
        if not isinstance(returned, types.Number | types.Boolean | types.NoneType):
            raise TypeError(
                f"{function.__name__} returns {returned}: a kernel with counts=False returns a "
                "number, a truth value or nothing."
            )
        return result
