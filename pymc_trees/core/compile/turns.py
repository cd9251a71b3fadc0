"""Processes that start with empty caches share the work of compiling: chains, workers, terminals.

A process claims a kernel before it compiles it. Another one that needs the kernel waits and reads
the code from the cache, or compiles something else meanwhile:

    in_turns([compile_sweeps, compile_particles])  # jobs that others are at come last

A claim is a lock on one byte of a file in the cache's folder. The operating system drops it when a
process ends, so that no claim is left behind. Nobody waits for ever: a process waits only for
kernels that those which it is compiling itself call, directly or not, and no kernel calls itself in
a circle. Where files cannot be locked (Windows, some network drives) each process compiles all.
"""

import hashlib
import importlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

fcntl = importlib.import_module("fcntl") if os.name == "posix" else None

FILE = "claims.lock"


class Busy(Exception):
    """Another process compiles the kernel."""


class _State(threading.local):
    def __init__(self):
        self.frames: list[list[tuple[int, int]]] = []
        """Claims of the kernels that are being compiled, the outermost first."""
        self.waits = True
        """Whether the outermost kernel is waited for."""


_state = _State()
_files: dict[str, int] = {}
"""Open lock files by folder. They stay open: to close one would drop all locks on it."""


@contextmanager
def turn() -> Iterator[None]:
    """Context of one kernel's compilation; drops its claim at the end."""
    _state.frames.append([])
    try:
        yield
    finally:
        for file, place in _state.frames.pop():
            fcntl.lockf(file, fcntl.LOCK_UN, 1, place)


def claim(folder: str, key: str) -> bool:
    """Claim a kernel within `turn`; whether another process may have compiled it meanwhile.

    Raises
    ------
    Busy
        Another process has claimed it, and `in_turns` has other work.
    """
    if fcntl is None or not _state.frames:
        return False
    place = int.from_bytes(hashlib.sha256(key.encode()).digest()[:6], "big")
    waits = _state.waits or len(_state.frames) > 1
    try:
        if folder not in _files:
            _files[folder] = os.open(f"{folder}/{FILE}", os.O_RDWR | os.O_CREAT, 0o666)
        fcntl.lockf(_files[folder], fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB), 1, place)
    except BlockingIOError as error:
        raise Busy(key) from error
    except OSError:  # the folder cannot be written, or its files cannot be locked
        return False
    _state.frames[-1].append((_files[folder], place))
    return True


def in_turns(jobs: list[Callable[[], object]]) -> None:
    """Do jobs that compile kernels; those whose next kernel another process is at come last.

    A job may be called several times, and should keep what it has compiled.
    """
    waiting = list(jobs)
    while waiting:
        late = [job for job in waiting if not _is_done_at_once(job)]
        if len(late) == len(waiting):
            late.pop(0)()
        waiting = late


def _is_done_at_once(job) -> bool:
    _state.waits = False
    try:
        job()
    except Busy:
        return False
    finally:
        _state.waits = True
    return True
