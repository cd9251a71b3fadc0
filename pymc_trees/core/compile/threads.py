"""Threads of kernels with parallel loops: how many there are, and who has them.

numba keeps one set of threads in a process, of a layer that is Intel's TBB where it is installed,
else OpenMP, else a queue of its own. GNU's OpenMP ends a process that uses threads which it had
before it was forked, and the queue must not be called from two threads at once. So threads go to
one caller at a time, and not to a process that was forked from one with OpenMP's; who gets none
goes on with one.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numba

_taken = threading.Lock()
_able = True


def available_threads() -> int:
    """Threads that numba may use: the cores, or what NUMBA_NUM_THREADS says.

    joblib sets that variable in its processes to a share of the cores.
    """
    return numba.config.NUMBA_NUM_THREADS


@contextmanager
def taken_threads(wanted: int) -> Iterator[int]:
    """Threads for the calls of the body: so many, or 1 where they are not to be had.

    What is computed must not depend on how many there are.
    """
    wanted = min(wanted, available_threads())
    if wanted > 1 and _able and _taken.acquire(blocking=False):
        try:
            yield wanted
        finally:
            _taken.release()
    else:
        yield 1


def _after_fork() -> None:
    global _taken, _able
    _taken = threading.Lock()  # which a thread of the other process may have held
    try:
        _able = _able and numba.threading_layer() != "omp"
    except ValueError:  # no threads were started
        pass


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
