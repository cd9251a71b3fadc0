"""What the compiled code of a kernel depends on.

1. The module in which it is defined, and all modules of this package that it imports, directly or
   by others: they hold the kernels that it calls, and constants. This is read from the sources.
2. The same of each kernel that is called in it, or in what it calls, also where the kernel was
   picked by the type of an argument (`dispatch`). They are noted while it compiles, and stored with
   the code.
3. Which implementation a type has of each generic kernel that is called. It may be registered in
   another module than its own, and by now be another one, or be registered in place of a default.

What numba's `overload` makes is typed once in a process, so that only its first caller would note
what it calls; it calls no kernels here.

A digest of these is stored too. Code whose digest is another one by now is compiled anew; an edit
of a file so costs what depends on it. Types of arguments are part of the key of the code, with the
names of their fields.
"""

import functools
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from numba.core import event

PACKAGE = Path(__file__).parents[2]
_IMPORT = re.compile(r"^ *from (pymc_trees[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)

CHOICE = "?"
"""What is noted is a module, or after this sign the choice of an implementation."""
IMPLEMENTATIONS: dict[str, str] = {}
"""Implementations registered now, by such choices; the others are left to defaults."""

_stack: list[set[str]] = []
"""What is noted for each kernel that is being compiled, the outermost first."""
_of_kernel: dict[tuple, frozenset[str]] = {}
"""Modules noted for a compiled kernel, by dispatcher and types of arguments."""


def note(modules: Iterable[str]) -> None:
    """Add to what the kernel that is being compiled depends on."""
    if _stack:
        _stack[-1].update(modules)


@contextmanager
def noted() -> Iterator[None]:
    """Context in which a kernel compiles that numba does not announce."""
    _stack.append(set())
    try:
        yield
    finally:
        note(_stack.pop())


def noted_now() -> frozenset[str]:
    """Modules noted so far for the kernel that is being compiled."""
    return frozenset(_stack[-1])


class _Listener(event.Listener):
    """`noted` around each compilation by numba."""

    def on_start(self, event):
        _stack.append(set())

    def on_end(self, event):
        found = _stack.pop()
        keep(event.data["dispatcher"], event.data["args"], found)
        note(found)


def keep(dispatcher, args, modules: Iterable[str]) -> None:
    """Keep the modules noted for a kernel, for kernels that call it later."""
    _of_kernel[dispatcher, args] = frozenset(modules)


def kept(dispatcher, args) -> frozenset[str]:
    """Modules noted for a kernel; for any types where a call leaves arguments to their defaults."""
    found = _of_kernel.get((dispatcher, args))
    if found is None:
        of_any = [modules for (one, _), modules in _of_kernel.items() if one is dispatcher]
        found = frozenset().union(*of_any)
    return found


def kept_by_kernel() -> dict[tuple, frozenset[str]]:
    """Modules noted for each kernel compiled or loaded, by dispatcher and types of arguments."""
    return dict(_of_kernel)


def digest_of(noted: frozenset[str]) -> str:
    """Digest of what is noted: the sources, with those imported, and what is chosen now."""
    choices = sorted(one for one in noted if one.startswith(CHOICE))
    chosen = [f"{one} {IMPLEMENTATIONS.get(one, '')}" for one in choices]
    digest = hashlib.sha256("\n".join(chosen).encode())
    digest.update(_digest_of_sources(noted.difference(choices)))
    return digest.hexdigest()


@functools.cache
def _digest_of_sources(modules):
    digest = hashlib.sha256()
    for module in sorted(closure(modules)):
        digest.update(f"{module} ".encode() + _source(module))
    return digest.digest()


def closure(modules: Iterable[str]) -> set[str]:
    """Modules, and all of this package that they import, directly or by others."""
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += _imports(module)
    return found


@functools.cache
def _imports(module):
    """Modules of the package that a module imports, also in functions."""
    found = set()
    for parent, names in _IMPORT.findall(_source(module).decode()):
        for name in re.findall(r"\w+", names):
            within = f"{parent}.{name}"
            found.add(within if _path(within) is not None else parent)
    return found


@functools.cache
def _source(module):
    """Source of a module as it is first asked for, which is when it is loaded; empty if unknown."""
    path = _path(module)
    try:
        return b"" if path is None else path.read_bytes()
    except OSError:
        return b""


def _path(module):
    """File of a module, in this package or loaded."""
    package, *parts = module.split(".")
    if package == "pymc_trees":
        at = PACKAGE.joinpath(*parts)
        found = [path for path in (at.with_suffix(".py"), at / "__init__.py") if path.is_file()]
        return found[0] if parts and found else None
    file = getattr(sys.modules.get(module), "__file__", None)
    return None if file is None else Path(file)


event.register("numba:compile", _Listener())
