"""A message when kernels are compiled for the first time, which takes a while."""

import logging
from multiprocessing import parent_process
from time import perf_counter

from numba.core import event

SECONDS = 1.0
"""Seconds of compilation after which the message is logged."""
LINE = "Compiling pymc_trees for the first time: up to a minute. The code is kept for later runs."

# A child of PyMC's logger: shown, and silenced, with PyMC's own lines.
_log = logging.getLogger("pymc.trees")


class Announcer(event.Listener):
    """Total compilation time of this package's kernels; logs the message once."""

    def __init__(self) -> None:
        self._depth, self._begun, self._spent = 0, 0.0, 0.0
        self._told = parent_process() is not None  # the parent process has logged it already

    def on_start(self, event):
        """Start the clock at the outermost compilation; nested ones occur within it."""
        if self._depth == 0:
            if not _is_kernel(event):
                return
            self._begun = perf_counter()
        self._depth += 1
        if not self._told and self._spent + perf_counter() - self._begun > SECONDS:
            self._told = True
            _log.info(LINE)

    def on_end(self, event):
        """Stop the clock when the outermost compilation ends."""
        if self._depth > 0:
            self._depth -= 1
            if self._depth == 0:
                self._spent += perf_counter() - self._begun


def _is_kernel(event):
    module = event.data["dispatcher"].py_func.__module__
    return module is not None and module.startswith("pymc_trees.")


def announce_compilation() -> None:
    """Subscribe to numba's compilation events."""
    event.register("numba:compile", Announcer())
