"""Processes that are killed, and threads that sample at the same time."""

import multiprocessing
import os
import signal
import threading

import numpy as np
import pymc as pm
import pytest
from support.small_models import FAST, bart_model

import pymc_trees as pmt
from pymc_trees.hooks.states import ChainLostError


@pytest.mark.full
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")
def test_a_killed_process_ends_the_run_and_the_draws_made_before_are_kept(quick_compile):
    at = {0: 0, 1: 0}

    def kill(trace, draw):
        at[draw.chain] = draw.draw_idx  # counted with those of tuning
        if min(at.values()) >= 5:
            for child in multiprocessing.active_children():
                os.kill(child.pid, signal.SIGKILL)

    with bart_model(), pytest.raises(ChainLostError, match=r"killed.*error\.idata") as caught:
        pm.sample(
            100_000, tune=2, chains=2, cores=2, mp_ctx="fork", callback=kill, random_seed=1, **FAST
        )
    assert multiprocessing.active_children() == []
    assert isinstance(caught.value.__cause__, EOFError | ConnectionError)
    assert caught.value.idata.posterior.sizes["draw"] >= 3


def test_two_threads_draw_what_one_after_the_other_draws(quick_compile):
    def draws(seed, found):
        model = bart_model(sigma=0.5)
        step = pmt.Hybrid(model=model, rng=np.random.default_rng(seed))
        point = model.initial_point()
        for _ in range(30):
            point, _ = step.step(point)
        found[seed] = point["mu_forest"]

    alone, together = {}, {}
    for seed in (1, 2):
        draws(seed, alone)
    threads = [threading.Thread(target=draws, args=(seed, together)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in (1, 2):
        np.testing.assert_array_equal(together[seed], alone[seed])
    assert not np.array_equal(alone[1], alone[2])
