"""Progress of long calls: a bar in a terminal or notebook, elsewhere a line a minute.

Lines go to the logger `pymc.trees`, like those on compilation.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter

import rich
from rich.progress import Progress

MINUTE = 60.0
"""Seconds from one line to the next."""

_log = logging.getLogger("pymc.trees")


def can_draw() -> bool:
    """Whether a bar can be drawn: not in a pipe or a file."""
    console = rich.get_console()
    return console.is_terminal or console.is_jupyter


class Lines:
    """Reports of what is done, a minute apart.

    Parameters
    ----------
    title : str
        What is done.
    total : int, optional
        How often in all.
    """

    def __init__(self, title: str, total: int | None = None) -> None:
        self.title, self.total = title, total
        self.done, self._begun = 0, perf_counter()
        self._next = self._begun + MINUTE

    def reach(self, done: int) -> None:
        """Report that so much is done."""
        self.done, now = done, perf_counter()
        if now >= self._next:
            self._next = now + MINUTE
            of_all = "" if self.total is None else f" of {self.total}"
            minutes = round((now - self._begun) / MINUTE)
            _log.info(f"{self.title}: {done}{of_all} after {minutes} min.")

    def advance(self, n: int = 1) -> None:
        """Report that more is done."""
        self.reach(self.done + n)


@contextmanager
def reporting(title: str, total: int, progressbar: bool) -> Iterator[Callable[[int], None]]:
    """Context with a function that is told how much is done in all."""
    if not progressbar:
        yield lambda done: None
    elif not can_draw():
        yield Lines(title, total).reach
    else:
        with Progress(transient=True) as progress:
            bar = progress.add_task(title, total=total)
            yield lambda done: progress.update(bar, completed=done)


def track[T](items: Iterable[T], title: str, total: int, progressbar: bool) -> Iterator[T]:
    """The items, with a report after each."""
    with reporting(title, total, progressbar) as report:
        for done, item in enumerate(items, 1):
            yield item
            report(done)
