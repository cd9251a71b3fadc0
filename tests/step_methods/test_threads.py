"""Threads of a step: the same draws for any number of them, and how many a chain has."""

import os
import subprocess
import sys

import joblib
import numpy as np
import pymc as pm
import pytest
from support.small_models import bart_model, sample, step_data

import pymc_trees as pmt
from pymc_trees.core.compile import threads
from pymc_trees.core.leaves import threaded
from pymc_trees.hooks import runs as hook
from pymc_trees.inference.chains.run import RUNNER, Runner


@pytest.fixture
def few_rows(monkeypatch):
    """Threads for fewer rows than pay for them, and four although there are fewer cores."""
    monkeypatch.setattr(threaded, "ROWS", 1000)
    monkeypatch.setattr(threads, "available_threads", lambda: 4)


def draws(n_threads, n=2000):
    """Values of a forest after each of some steps."""
    X, y = step_data(n, 3)
    with pm.Model() as model:
        mu = pmt.BART("mu", X, y, m=5, n_cuts=100, max_nodes=400)
        pm.Normal("y", mu, 0.5, observed=y, shape=mu.shape)
        step = pmt.Hybrid([mu], local_sweeps=3, rng=1, batch=(0.4, 0.4), threads=n_threads)
    point, found = model.initial_point(), []
    for _ in range(6):
        point, _ = step.step(point)
        found.append(point[step.forests[0].value_name].copy())
    return np.array(found)


@pytest.mark.full
def test_draws_are_the_same_for_any_number_of_threads(few_rows):
    one = draws(1)
    assert len(np.unique(one[:, : one.shape[1] // 2], axis=0)) > 1
    for n_threads in (2, 4):
        np.testing.assert_array_equal(draws(n_threads), one)


FORKED = """
import os
import numpy as np
from pymc_trees.core.compile.threads import taken_threads
from pymc_trees.core.leaves import threaded

threaded.ROWS = 10
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.leaves.contract import swap_residual
from pymc_trees.core.forest.trees import make_trees

def sums():
    trees, stats = make_trees(1, 7, 1, 5000), np.zeros((7, 2))
    with taken_threads(2) as n_threads:
        leaf = threaded.in_threads(make_normal(0.0, 1.0, np.ones(5000), 1.0, 7), n_threads)
        swap_residual(leaf, trees, -1, 0, np.zeros(1, np.int32), 1, stats)
    return stats[0, 1]

assert sums() == 5000
process = os.fork()
if process == 0:
    os._exit(0 if sums() == 5000 else 3)
assert os.waitpid(process, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_goes_on_after_its_parent_had_threads():
    environment = os.environ | {"NUMBA_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", FORKED], check=True, env=environment)


class _Stop(Exception):
    """Before any draw."""


def left_by(monkeypatch, cores_of_machine=8, **arguments):
    """Threads that a step is told of when a run begins."""
    monkeypatch.setattr(hook, "available_threads", lambda: cores_of_machine)
    with bart_model():
        step = pmt.CGM()
        found = []

        def stop(self, *given):
            found.append(self.threads_left)
            raise _Stop

        monkeypatch.setattr(pmt.CGM, "setup_chain", stop)
        with pytest.raises(_Stop):
            sample(2, 2, step=step, **arguments)
    return found[0]


def test_chains_in_this_process_leave_all_cores(monkeypatch):
    assert left_by(monkeypatch, chains=1, cores=None) == 8
    assert left_by(monkeypatch, chains=2, cores=1) == 1
    assert left_by(monkeypatch, chains=1, cores=3) == 3


def told(monkeypatch, name, **given):
    """Threads that a step is told of in a loop of PyMC."""
    monkeypatch.setattr(hook, "available_threads", lambda: 9)
    step = pmt.CGM(model=bart_model())
    getattr(hook, name)(lambda **given: None, step=step, **given)
    return step.threads_left


def test_chains_in_processes_share_the_cores(monkeypatch):
    assert told(monkeypatch, "_in_processes", chains=3, cores=2) == 4
    assert told(monkeypatch, "_in_processes", chains=30, cores=20) == 1


@pytest.mark.parametrize("backend, left", [("loky", None), ("threading", 1)])
def test_processes_of_joblib_are_told_by_it(monkeypatch, backend, left):
    token = RUNNER.set(Runner(2, False))
    try:
        with joblib.parallel_config(backend):
            assert told(monkeypatch, "_in_sequence") == left
    finally:
        RUNNER.reset(token)


@pytest.mark.full
def test_processes_of_joblib_do_not_take_more_threads_than_there_are_cores():
    with joblib.parallel_config("loky"):
        found = joblib.Parallel(2)(joblib.delayed(threads.available_threads)() for _ in range(2))
    assert found == [max(joblib.cpu_count() // 2, 1)] * 2


def test_threads_must_be_a_number():
    with bart_model(), pytest.raises(ValueError, match="threads=0"):
        pmt.CGM(threads=0)
