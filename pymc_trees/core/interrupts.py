"""Interrupts (ctrl-C) wait for compiled code.

A handler runs wherever Python checks for signals, even in the middle of a compiled call: numba
reads a `numpy.random.Generator` through attributes written in Python, and does not handle
exceptions raised there. Such an exception from the handler ends the process; elsewhere a call
"returned a result with an exception set"; and arrays that a call changes in place would be left
half changed. Within `deferred_interrupts` the handler therefore only records an interrupt, which is
handled afterwards.
"""

import _signal  # `signal` wraps the same functions in enumerations, which takes 10 times as long
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Any

PATIENCE = 0.05
"""Interval, in seconds, at which `run_interruptible` checks for interrupts."""

_current: "deferred_interrupts | None" = None
"""The outermost active context."""


def _in_other_thread():
    return threading.get_ident() != threading.main_thread().ident


class deferred_interrupts:  # noqa: N801 (used like a function)
    """Context in which an interrupt is recorded, and handled at its end.

    In the main thread the handler of SIGINT is replaced, and restored on exit; a recorded interrupt
    is then passed to it. An exception of the body takes precedence: one raised by the handler is
    added to it as a note. Other threads never run handlers, a handler that is not Python's runs no
    Python code, and an outer context already does the work: in these cases this does nothing.
    """

    # class attributes: a context without an interrupt need not set them
    _handler: Callable | None = None
    _noted = False
    _outer: "deferred_interrupts | None" = None

    def __enter__(self):
        if _in_other_thread():
            return self
        global _current
        self._outer = _current
        if self._outer is not None:
            return self
        handler = _signal.getsignal(_signal.SIGINT)
        if not callable(handler):
            return self
        # Python checks for signals in calls: between these lines and the call below none can
        # arrive.
        _current, self._handler = self, handler
        try:
            _signal.signal(_signal.SIGINT, self._note)
        except ValueError:  # not the main interpreter
            _current = self._handler = None
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(self, kind, error, trace):
        if self._handler is None:
            return
        handler = self._handler
        try:
            self._leave()
            if self._noted:
                handler(_signal.SIGINT, sys._getframe(1))
        except BaseException as raised:
            if error is None or isinstance(error, KeyboardInterrupt):
                raise
            error.add_note(f"An interrupt came before it: {raised!r}.")

    def _leave(self):
        global _current
        handler, self._handler = self._handler, None
        _current = None
        _signal.signal(_signal.SIGINT, handler)

    def _note(self, number, frame):
        self._noted = True

    def answer(self) -> None:
        """Pass a recorded interrupt to its handler now: the body may be left here."""
        if self._outer is not None:
            self._outer.answer()
        elif self._noted and self._handler is not None:
            self._noted = False
            self._handler(_signal.SIGINT, sys._getframe(1))


class answered_interrupts:  # noqa: N801 (used like a function)
    """Context within `deferred_interrupts` in which the handler runs at once.

    For waiting in Python; compiled code must be in a `deferred_interrupts` of its own.
    """

    _held: deferred_interrupts | None = None

    def __enter__(self):
        global _current
        held = None if _in_other_thread() else _current
        if held is None or held._handler is None:
            return self
        held.answer()
        _signal.signal(_signal.SIGINT, held._handler)
        self._held, _current = held, None
        return self

    def __exit__(self, kind, error, trace):
        if self._held is not None:
            global _current
            _signal.signal(_signal.SIGINT, self._held._note)
            _current = self._held


def interrupts_wait() -> bool:
    """Whether a context is active in which interrupts are only recorded."""
    return _current is not None and not _in_other_thread()


_beside: ThreadPoolExecutor | None = None
"""The thread of `run_interruptible`: always the same, for OpenMP gives every thread that calls it
new ones, and it takes milliseconds until these have a core each."""


def _forget() -> None:
    global _beside
    _beside = None
    if _current is not None:
        _current._leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)  # whose body is another


def run_interruptible(call: Callable[[], Any], stop_flag) -> Any:
    """Result of a long call, made in a thread while the main thread handles interrupts.

    The call must release Python's lock. If the handler raises an exception, as it does by default,
    the call is told to end, and the exception propagates when it has: nothing writes to its arrays
    then. Outside the main thread the call is made directly.

    Parameters
    ----------
    call : callable
        Without arguments.
    stop_flag : (1,) bool array
        Set when the call should end soon, with any result.
    """
    stop_flag[0] = False
    if _in_other_thread():
        return call()
    global _beside
    with deferred_interrupts() as held:
        _beside = _beside or ThreadPoolExecutor(1)
        made = _beside.submit(copy_context().run, call)
        try:
            while not made.done():
                wait([made], PATIENCE)
                held.answer()
        except BaseException:
            stop_flag[0] = True
            wait([made])
            raise
    return made.result()
