"""`njit` for kernels: code that cannot be written to disk, or read from it, is recompiled.

numba's own cache lets file-system errors interrupt a computation, runs damaged files, and keeps
kernels whose callees have changed. Functions of other packages are not affected.
"""

import functools
import hashlib
import sys
import warnings
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import numba
from numba import types
from numba.core.caching import FunctionCache, IndexDataCacheFile

from pymc_trees.core.compile import depends
from pymc_trees.core.compile.announce import announce_compilation
from pymc_trees.core.compile.compiler import LINKED, KernelCompiler, LinkedCache
from pymc_trees.core.compile.pointer import Pointer
from pymc_trees.core.compile.turns import claim, turn

announce_compilation()
_DIGEST = hashlib.sha256().digest_size
_NUMERIC = "fastmath", "error_model"
"""Options on which the numbers that a kernel computes depend."""
_told = False


def njit(*, cache, **options):
    """`numba.njit` with a cache that never fails.

    Versions for calls from other kernels and from Python are compiled separately (`compiler`).
    """

    def decorate(function):
        kernel = numba.njit(pipeline_class=KernelCompiler, **options)(function)
        if numba.config.DISABLE_JIT:
            return kernel
        if cache:
            keep_code(kernel, function, "")

        @functools.cache
        def inner():
            called = numba.njit(**LINKED | options)(function)
            if cache:
                keep_code(called, function, ".linked", LinkedKernelCache)
            return called

        def get_call_template(args, kws):
            args = plain(args)
            template = inner().get_call_template(args, kws)
            depends.note(depends.kept(inner(), args) | {function.__module__})
            return template

        kernel.get_call_template = get_call_template
        kernel.get_overload = lambda signature: inner().get_overload(signature)
        return kernel

    return decorate


def without_wrappers(given):
    """The kernel, to be called by the address of its machine code and not from Python."""
    kept = {name: given.targetoptions[name] for name in _NUMERIC if name in given.targetoptions}
    kernel = numba.njit(
        pipeline_class=KernelCompiler, no_cpython_wrapper=True, no_cfunc_wrapper=True, **kept
    )(given.py_func)
    keep_code(kernel, given.py_func, ".called")
    return kernel


def plain(args: tuple[types.Type, ...]) -> tuple[types.Type, ...]:
    """Argument types of a call: integers as int64, and no literal values.

    A kernel is so compiled once for indices that come from arrays of int32, from loops and from
    constants.
    """
    found = [types.unliteral(kind) for kind in args]
    small = [isinstance(kind, types.Integer) and kind.bitwidth < 64 for kind in found]
    return tuple(types.int64 if is_small else kind for kind, is_small in zip(found, small))


def keep_code(kernel, function, ending, kind=None):
    """Keep the compiled code of a function's dispatcher, and compile it in turn (`turns`)."""
    cache, compile_alone = cache_of(function, ending, kind), kernel.compile
    if cache is None:
        return
    kernel._cache, cache.kernel = cache, kernel

    def compile(signature):
        with turn():
            return compile_alone(signature)

    kernel.compile = compile


def cache_of(function, ending, kind=None):
    """Cache of a function's compiled code, in files with a suffix; None without a folder."""
    try:
        return (kind or KernelCache)(function, ending)
    except (OSError, RuntimeError) as error:  # RuntimeError: numba found no folder
        _tell(error)
        return None


class KernelCache(FunctionCache):
    """Cache of one kernel; the run continues if it cannot be saved."""

    kernel = None
    """Its dispatcher."""

    def __init__(self, function, ending):
        super().__init__(function)
        locator, name = self._impl.locator, self._impl.filename_base
        stamp = depends.digest_of(frozenset({function.__module__}))
        if not function.__module__.startswith("pymc_trees."):  # perhaps a cell of a notebook
            stamp = (locator.get_source_stamp(), stamp)
        self._cache_file = KernelFile(locator.get_cache_path(), name + ending, stamp)

    def _index_key(self, sig, codegen):
        """The key as text: types of another script in the index need not be importable."""
        _, *others = super()._index_key(sig, codegen)
        words = describe(sig)
        return (sig if " at 0x" in words else words, *others)  # an address names nothing for long

    def load_overload(self, sig, target_context):
        """Cached code, perhaps of a process that compiles it now; or None."""
        try:
            found = super().load_overload(sig, target_context)
            if found is None and claim(
                self.cache_path, f"{self._cache_file._index_path} {describe(sig)}"
            ):
                found = super().load_overload(sig, target_context)
        except OSError as error:
            _tell(error)
            return None
        if found is not None:
            modules = self._cache_file.modules
            depends.keep(self.kernel, found.signature.args, modules)
            depends.note(modules)
        return found

    def save_overload(self, sig, data):
        """Cache compiled code if possible."""
        self._cache_file.modules = self._modules(data.signature.args)
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _tell(error)

    def _modules(self, args):
        """Modules of what was picked by type while the kernel compiled."""
        return depends.kept(self.kernel, args)


@functools.cache
def described(kind):
    """Text that identifies a class or function and, outside this package, the state of its file.

    The state is that of the first request, since the loaded object corresponds to the file as it
    was then. Of a named tuple it has the fields, which kernels find by their place.
    """
    name, module = f"{kind.__module__}.{kind.__qualname__}", sys.modules.get(kind.__module__)
    if hasattr(kind, "_fields"):
        name += f"({' '.join(kind._fields)})"
    file = getattr(module, "__file__", None)
    if file is None or name.split(".")[0] == "pymc_trees":  # of which `depends` knows more
        return name
    try:
        return f"{name}.{hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]}"
    except OSError:
        return name


def describe(sig):
    """Text that identifies types, or those of a signature, with the modules of named tuples."""
    if not isinstance(sig, tuple):
        return f"{describe(sig.args)} -> {describe((sig.return_type,))}"
    words = []
    for one in sig:
        words.append(str(one))
        if isinstance(one, types.BaseNamedTuple | Pointer):
            words.append(described(one.instance_class))
        if isinstance(one, types.BaseTuple | Pointer):
            words.append(f"[{describe(one.types)}]")
    return ", ".join(words)


class LinkedKernelCache(KernelCache):
    """Cache of a kernel that only others call."""

    _impl_class = LinkedCache


class KernelFile(IndexDataCacheFile):
    """Files of a kernel's cache, which end in a digest; a file that does not match is ignored.

    Data files contain their stamp and key too: two processes that start with an empty folder may
    use one name for two versions of a kernel. And they contain the modules on which the code
    depends beside its own (`depends`), with a digest of these.
    """

    modules: frozenset[str] = frozenset()
    """Those modules, of the data to save and of the data loaded last."""

    def save(self, key, data):
        """Save under a key."""
        digest = depends.digest_of(self.modules)
        super().save(key, (self._source_stamp, key, data, self.modules, digest))

    def load(self, key):
        """Data saved under a key, or None."""
        found = super().load(key)
        if found is None or found[:2] != (self._source_stamp, key):
            return None
        _, _, data, modules, digest = found
        if depends.digest_of(modules) != digest:
            return None
        self.modules = modules
        return data

    def _load_index(self):
        return super()._load_index() if _is_whole(self._index_path) else {}

    def _load_data(self, name):
        return super()._load_data(name) if _is_whole(self._data_path(name)) else None

    @contextmanager
    def _open_for_write(self, filepath):
        with super()._open_for_write(filepath) as file:
            content = BytesIO()
            yield content
            file.write(content.getvalue() + _digest(content.getvalue()))


def _digest(content):
    return hashlib.sha256(content).digest()


def _is_whole(path):
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        return False
    return content[-_DIGEST:] == _digest(content[:-_DIGEST])


def _tell(error):
    global _told
    if not _told:
        _told = True
        warnings.warn(
            f"Compiled kernels cannot be kept on disk ({error}), so that every process compiles "
            "them anew. Free disk space there, or name another folder in the environment variable "
            "NUMBA_CACHE_DIR.",
            stacklevel=2,
        )
