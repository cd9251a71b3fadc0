"""Threads of kernels with parallel loops: their number, and which caller has them.

numba keeps one pool of threads per process; its threading layer is Intel's TBB if installed,
otherwise OpenMP, otherwise a work queue of its own. GNU's OpenMP terminates a forked process that
uses threads started before the fork, and the work queue must not be called from two threads at
once. Threads are therefore given to one caller at a time, and not to a process forked from one that
used OpenMP; other callers run with one thread.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numba

WORTH = 4_000_000
"""Visits of a row in a tree, a nanosecond each, from which threads of Python pay off."""

_pool: ThreadPoolExecutor | None = None
_share: int | None = None
_taken = threading.Lock()
_able = True


def available_threads() -> int:
    """Number of threads that numba may use: the cores, or NUMBA_NUM_THREADS.

    joblib sets that variable in its processes to a share of the cores.
    """
    return numba.config.NUMBA_NUM_THREADS


@contextmanager
def taken_threads(wanted: int) -> Iterator[int]:
    """Context with a number of threads, or with 1 if they are not available.

    Results must not depend on the number of threads.
    """
    wanted = min(wanted, available_threads())
    if wanted > 1 and _able and _taken.acquire(blocking=False):
        try:
            yield wanted
        finally:
            _taken.release()
    else:
        yield 1


def give_threads(share: int | None) -> None:
    """Set the threads of the chain that this process runs; None, where it may use them all."""
    global _share
    _share = share


def given_threads() -> int:
    """Number of threads that `give_threads` set, or all."""
    return _share or available_threads()


def by_rows(work: Callable[[int, int], object], n: int, n_threads: int) -> list:
    """Results of a function of the first row and the row after the last, each in its thread.

    The function lets other threads run: it calls a kernel with ``nogil=True``, say. Threads of
    Python need no layer of numba's, and are not lost in a forked process.
    """
    global _pool
    size = max(-(-n // n_threads), 1)
    parts = [(start, min(start + size, n)) for start in range(0, n, size)]
    if len(parts) < 2:
        return [work(*part) for part in parts]
    if _pool is None:
        _pool = ThreadPoolExecutor(available_threads())
    others = [_pool.submit(work, *part) for part in parts[1:]]
    return [work(*parts[0]), *(other.result() for other in others)]


def _after_fork() -> None:
    global _taken, _able, _pool
    _pool = None
    _taken = threading.Lock()  # a thread of the parent process may have held it
    try:
        _able = _able and numba.threading_layer() != "omp"
    except ValueError:  # no threads have been started
        pass


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
