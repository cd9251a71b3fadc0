"""Interrupts (ctrl-C) wait for compiled code.

A handler runs wherever Python looks for signals, and that is also in the middle of a compiled call:
to read a `numpy.random.Generator` numba goes through attributes written in Python, and takes no
exception from them. One raised there by the handler ends the process; elsewhere a call "returned a
result with an exception set"; and arrays that a call changes in place would be left half changed.
So the handler only notes an interrupt while a `deferred_interrupts` lasts, and what was to happen
happens afterwards.
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
"""Seconds after which `run_apart` answers an interrupt."""

_current: "deferred_interrupts | None" = None
"""The outermost context that lasts."""


def _in_other_thread():
    return threading.get_ident() != threading.main_thread().ident


class deferred_interrupts:  # noqa: N801 (used like a function)
    """Context in which an interrupt is noted, and answered at its end.

    In the main thread the handler of SIGINT is replaced, and put back on leaving; the noted
    interrupt is then given to it. An exception of the body goes first: one that the handler raises
    is a note to it. Other threads never run handlers, a handler that is not Python's runs no Python
    code, and within another such context there is nothing left to do: then this does nothing.
    """

    # of the class, so that a context that notes nothing need not set them
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
        # Python looks for signals in calls: between these lines and the call below none can arrive.
        _current, self._handler = self, handler
        try:
            _signal.signal(_signal.SIGINT, self._note)
        except ValueError:  # an interpreter that is not the main one
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
        """Give a noted interrupt to its handler now: here the body may be left."""
        if self._outer is not None:
            self._outer.answer()
        elif self._noted and self._handler is not None:
            self._noted = False
            self._handler(_signal.SIGINT, sys._getframe(1))


class answered_interrupts:  # noqa: N801 (used like a function)
    """Context within `deferred_interrupts` in which the handler runs at once.

    For waiting in Python; what is compiled must be in a `deferred_interrupts` of its own.
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
    """Whether a context lasts in which interrupts are only noted."""
    return _current is not None and not _in_other_thread()


_beside: ThreadPoolExecutor | None = None
"""The thread of `run_apart`: always the same, for OpenMP gives every thread that calls it new ones,
and it takes milliseconds until these have a core each."""


def _forget() -> None:
    global _beside
    _beside = None
    if _current is not None:
        _current._leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)  # whose body is another


def run_apart(call: Callable[[], Any], cease) -> Any:
    """Result of a long call, made in a thread while the main one answers interrupts.

    The call must let go of Python's lock. When the handler raises an exception, as it does by
    default, the call is asked to end, and the exception goes on once it has: nothing writes into
    its arrays then. In another thread the call is simply made.

    Parameters
    ----------
    call : callable
        Without arguments.
    cease : (1,) bool array
        Set when the call is to end soon, with any result.
    """
    cease[0] = False
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
            cease[0] = True
            wait([made])
            raise
    return made.result()
