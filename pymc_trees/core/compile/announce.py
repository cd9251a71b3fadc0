"""A line while kernels are compiled for the first time, which takes a while.

The kernel that Python calls, with the types of its arguments, tells what it is for. A second line
follows after `PATIENCE`, and so on. Python's garbage collector pauses meanwhile: a compiler makes
hundreds of thousands of objects that live on, and each of its searches goes through all of them.
"""

import gc
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import current_process, parent_process
from time import perf_counter

from numba import typeof, types
from numba.core import event

SECONDS = 1.0
"""Seconds that a kernel compiles before it is announced."""
PATIENCE = 10.0
"""Seconds until the next line."""

NAMES = {
    "sweeps": "local moves of trees",
    "joint_sweeps": "local moves of trees with weighed leaf values",
    "screened_sweeps": "screened moves of trees",
    "particle_sweep": "particle Gibbs",
    "top_down_smc": "sequential Monte Carlo",
    "soft_sweeps": "moves of soft trees",
    "screened_soft_sweeps": "screened moves of soft trees",
    "shapley": "Shapley values",
    "soft_shapley": "Shapley values of soft trees",
    "add_values": "sums over leaves",
    "add_dependence": "interaction strengths",
    "leaves_of": "leaves of trees",
    "variance_shares": "Sobol indices",
    "fill_mixed": "columns of a data frame",
    "encode": "initial trees",
    "decode": "initial trees",
    "walk_trees": "predictions of trees",
    "look_up": "predictions of trees",
    "grow_tree": "a Mondrian tree",
    "extend_tree": "the extension of a Mondrian tree",
    "extend_forest": "the extension of Mondrian trees",
    "add_moments": "predictions of Mondrian trees",
    "add_class_probabilities": "predictions of Mondrian trees",
}
"""What kernels are for; another one goes by its name."""
PARTS = ("leaf", "design")
"""Fields of a problem whose types make a kind of model."""
ESTIMATES = {
    "samplers of trees": 30,
    "local moves of trees": 15,
    "particle Gibbs": 15,
    "moves of soft trees": 30,
}
"""CPU seconds that kernels compile, from empty caches (benchmarks/notes/first_run.md)."""
OTHERS = 10
"""Those of other kernels, at most."""
MORE = {"levels or missing cells": 10, "columns on a grid": 5}
"""Further seconds for kinds of columns (benchmarks/notes/compile_time.md)."""

# A child of PyMC's logger: shown, and silenced, with PyMC's own lines.
_log = logging.getLogger("pymc.trees")


class Announcer(event.Listener):
    """Lines on the compilation of this package's kernels."""

    def __init__(self) -> None:
        self._depth, self._kernels = 0, 0
        self._begun = self._next = 0.0
        self._what = ""
        self._collects = False

    def on_start(self, event):
        """Start the clock at the outermost compilation; nested ones occur within it."""
        if self._depth == 0:
            if not _is_kernel(event):
                return
            self._begin(purpose(event.data["dispatcher"].py_func, event.data["args"]))
        self._depth += 1
        self._kernels += 1
        now = perf_counter()
        if now > self._next and not is_silent():
            show_lines()
            if self._next == self._begun + SECONDS:
                _log.info(
                    f"Compiling {self._what}: about {estimate(self._what)} s on an idle machine, "
                    "once. The code is kept for later runs."
                )
            else:
                _log.info(
                    f"... {self._what}: {now - self._begun:.0f} s, {self._kernels} kernels so far."
                )
            self._next = now + PATIENCE

    @contextmanager
    def together(self, what: str) -> Iterator[None]:
        """Context in which what is compiled is one thing, with this name."""
        if self._depth == 0:
            self._begin(what)
        self._depth += 1
        try:
            yield
        finally:
            self.on_end(None)

    def _begin(self, what):
        self._begun, self._kernels = perf_counter(), 0
        self._next, self._what = self._begun + SECONDS, what
        self._collects = gc.isenabled()
        gc.disable()

    def on_end(self, event):
        """Stop the clock when the outermost compilation ends."""
        if self._depth > 0:
            self._depth -= 1
            if self._depth == 0 and self._collects:
                gc.enable()


def show_lines() -> None:
    """Show lines where PyMC, which does so, is not loaded: as with Mondrian forests."""
    parent = logging.getLogger("pymc")
    if "pymc" not in sys.modules and not parent.handlers and not logging.root.handlers:
        parent.setLevel(logging.INFO)
        parent.addHandler(logging.StreamHandler())


def is_silent() -> bool:
    """Whether this is a child process; the first of PyMC's chains speaks for the others."""
    return parent_process() is not None and current_process().name != "worker_chain_0"


def purpose(function, args) -> str:
    """What a kernel is for: its name in words, and the kind of model from its types."""
    name = function.__name__.strip("_")
    words = NAMES.get(name, name.replace("_", " "))
    kinds = ", ".join(map(in_words, _parts(args)))
    return f"{words} ({kinds})" if kinds else words


def _parts(args: tuple) -> Iterator[types.Type]:
    """Types of the leaf and of the columns, in an argument or in a field of one."""
    for kind in args:
        fields = dict(zip(getattr(kind, "fields", ()), getattr(kind, "types", ())))
        yield from (fields[name] for name in PARTS if hasattr(fields.get(name), "instance_class"))


def estimate(what: str) -> int:
    """Seconds that kernels compile on an idle machine, by what they are for."""
    known = [seconds for name, seconds in ESTIMATES.items() if what.startswith(name)]
    return (known or [OTHERS])[0] + sum(more for kind, more in MORE.items() if kind in what)


def kinds_of(problem: tuple) -> str:
    """The kind of a model in words."""
    return ", ".join(map(in_words, _parts((typeof(problem),))))


def in_words(kind) -> str:
    """``NormalGammaData`` as "normal gamma leaf", a design by its columns."""
    name = kind.instance_class.__name__
    if name == "MixedDesign":
        return "levels or missing cells"
    if name == "ReferencedDesign":
        return "random columns"
    if name == "Design":
        [columns] = [one for one, field in zip(kind.types, kind.fields) if field == "columns"]
        return "columns on a grid" if isinstance(columns.dtype, types.Integer) else "numbers"
    words = re.findall(r"[A-Z][a-z]*", name.removesuffix("Data"))
    return f"{' '.join(words).lower()} leaf"


def _is_kernel(event):
    module = event.data["dispatcher"].py_func.__module__
    return module is not None and module.startswith("pymc_trees.")


ANNOUNCER = Announcer()


def announce_compilation() -> None:
    """Subscribe to numba's compilation events."""
    event.register("numba:compile", ANNOUNCER)
