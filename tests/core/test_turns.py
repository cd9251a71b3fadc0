"""Processes that share the work of compiling."""

import importlib
import multiprocessing
import os

import numpy as np
import pytest
from numba.core import event

from pymc_trees.core.compile.turns import claim, in_turns, turn

fcntl = pytest.importorskip("fcntl")
FORK = multiprocessing.get_context("fork")


class Compiled(event.Listener):
    """Names of kernels of `KERNELS` that are compiled."""

    def __init__(self):
        self.names = []

    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        if function.__module__ == "some_kernels":
            self.names.append(function.__name__)

    def on_end(self, event):
        pass


KERNELS = """
import numpy as np
from pymc_trees.core.compile.cache import njit

@njit(cache=True)
def inner(x):
    return np.sqrt(x) + np.log(1.0 + x)

@njit(cache=True)
def outer(x):
    return inner(x[0]) + inner(x[1])
"""


def _compile(barrier, answers):
    compiled = Compiled()
    kernels = importlib.import_module("some_kernels")
    event.register("numba:compile", compiled)
    barrier.wait()
    answers.put((kernels.outer(np.arange(2.0)), compiled.names))


def test_each_kernel_is_compiled_by_one_of_several_processes(tmp_path, monkeypatch):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "some_kernels.py").write_text(KERNELS)
    barrier, answers = FORK.Barrier(3), FORK.Queue()
    for _ in range(3):
        FORK.Process(target=_compile, args=(barrier, answers)).start()
    found = [answers.get(timeout=60) for _ in range(3)]
    assert all(value == pytest.approx(1.0 + np.log(2.0)) for value, _ in found)
    assert sorted(names for _, names in found) == [[], [], ["outer", "inner"]]


def _hold(folder, key, held, released):
    with turn():
        assert claim(folder, key)
        held.set()
        released.wait(60)


def test_jobs_of_others_come_last(tmp_path):
    folder, done = str(tmp_path), []
    held, released = FORK.Event(), FORK.Event()
    other = FORK.Process(target=_hold, args=(folder, "first", held, released))
    other.start()
    assert held.wait(60)

    def job(key):
        with turn():
            assert claim(folder, key)
            done.append(key)

    def last():
        with turn():
            assert claim(folder, "third")
            done.append("third")
            released.set()

    in_turns([lambda: job("first"), lambda: job("second"), last])
    assert done == ["second", "third", "first"]
    other.join()


def test_a_claim_ends_with_its_process_and_with_its_turn(tmp_path):
    folder, held = str(tmp_path), FORK.Event()
    other = FORK.Process(target=_hold, args=(folder, "one", held, FORK.Event()))
    other.start()
    assert held.wait(60)
    tried = []

    def job():
        with turn():
            tried.append(claim(folder, "one"))

    other.kill()
    in_turns([job])  # waits until it is over
    assert tried == [True]
    with turn(), turn():
        assert claim(folder, "one")
    held = FORK.Event()
    other = FORK.Process(target=_hold, args=(folder, "one", held, held))
    other.start()
    assert held.wait(60)
    other.join()
    assert other.exitcode == 0


def test_nobody_claims_where_nothing_can_be_written(tmp_path):
    with turn():
        assert not claim(os.path.join(tmp_path, "missing"), "one")
    assert not claim(str(tmp_path), "one")  # outside a turn, as numba's own kernels


def test_jobs_that_fail_raise():
    def fails():
        raise ValueError("no code")

    with pytest.raises(ValueError, match="no code"):
        in_turns([fails])
