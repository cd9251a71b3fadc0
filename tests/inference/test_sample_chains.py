"""Chains given out by joblib: the draws of `pm.sample`, and what becomes of chains that fail."""

import os
import re
import signal
from pathlib import Path

import joblib
import numpy as np
import pymc as pm
import pytest
from joblib.externals import loky
from support.small_models import FAST, assert_same_draws, bart_model

import pymc_trees as pmt
from pymc_trees.inference.chains import run as chain_runs
from pymc_trees.inference.chains.run import ChainPiece, run_chain

pytestmark = pytest.mark.usefixtures("quick_compile")
RUN = {"draws": 6, "tune": 8, "random_seed": 5, **FAST}


@pytest.fixture(scope="module")
def model(quick_compile):
    return bart_model(sigma=None)


@pytest.fixture(scope="module")
def expected(model):
    with model:
        return pm.sample(chains=3, cores=1, **RUN)


def test_draws_are_those_of_pymc(model, expected, caplog):
    caplog.set_level("INFO", logger="pymc.sampling.mcmc")
    assert_same_draws(pmt.sample_chains(model, 3, cores=1, **RUN), expected)
    assert "Chains by joblib (3 chains)" in caplog.text
    assert "Sequential" not in caplog.text


def test_tuning_is_kept_when_asked_for(model):
    options = {**RUN, "discard_tuned_samples": False}
    with model:
        here = pm.sample(chains=2, cores=1, **options)
        there = pmt.sample_chains(chains=2, cores=1, **options)
    assert_same_draws(there, here)
    np.testing.assert_array_equal(
        there["warmup_posterior"]["mu_forest"], here["warmup_posterior"]["mu_forest"]
    )


@pytest.mark.full
def test_draws_are_the_same_in_other_processes(model, expected, monkeypatch):
    """To the last bit where they compile as this one does."""
    flags = f"{os.environ.get('PYTENSOR_FLAGS', '')},mode=FAST_COMPILE"
    monkeypatch.setenv("PYTENSOR_FLAGS", flags.lstrip(","))
    loky.get_reusable_executor().shutdown()  # processes that were started before
    assert_same_draws(pmt.sample_chains(model, 3, cores=2, **RUN), expected)
    loky.get_reusable_executor().shutdown()


def failing(chain, error):
    def run(task):
        if task.chain == chain:
            return ChainPiece(chain, [], [], error)
        return run_chain(task)

    return run


def test_a_chain_that_fails_is_left_out(model, expected, monkeypatch):
    monkeypatch.setattr(chain_runs, "run_chain", failing(1, ValueError("no such number.")))
    with pytest.warns(
        UserWarning, match=r"(?s)left out: chain 1, ValueError: no such number.*2 of 3"
    ):
        found = pmt.sample_chains(model, 3, cores=1, **RUN)
    kept = expected.posterior["mu_forest"][[0, 2]]
    np.testing.assert_array_equal(found.posterior["mu_forest"], kept)


def test_an_error_of_every_chain_is_raised(model, monkeypatch):
    monkeypatch.setattr(chain_runs, "run_chain", failing(0, ValueError("no such number.")))
    with pytest.raises(ValueError, match="no such number"):
        pmt.sample_chains(model, 1, cores=1, **RUN)


def test_errors_come_from_the_task(model):
    rng = chain_runs.get_state_from_generator(np.random.default_rng(1))
    task = chain_runs.Task(b"no step", 2, {}, rng, 1, 1, keeps_tune=False, n=2, is_last=True)
    drawn = run_chain(task)
    assert drawn.points == [] and "chain 2" in drawn.error.__notes__[0]


def test_an_interrupt_keeps_the_chains_that_had_ended(model, expected, monkeypatch):
    def run(task):
        if task.chain == 2:
            signal.raise_signal(signal.SIGINT)
        return run_chain(task)

    monkeypatch.setattr(chain_runs, "run_chain", run)
    with pytest.warns(UserWarning, match="Interrupted.*2 of 3 chains"):
        found = pmt.sample_chains(model, 3, cores=1, **RUN)
    np.testing.assert_array_equal(found.posterior["mu_forest"], expected.posterior["mu_forest"][:2])


def killed_once(task, flag):
    if task.chain == 1 and not Path(flag).exists():
        if Path(flag).parent.exists():
            Path(flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return ChainPiece(task.chain, [{"x": np.ones(1) * task.chain}], [[{}]], None)


class Recorded(list):
    def record(self, point, stats, *, in_warmup):
        self.append((point, in_warmup))

    def close(self):
        pass


def given_out(runner, chains):
    traces = [Recorded() for _ in range(chains)]
    runner(
        draws=1,
        chains=chains,
        traces=traces,
        start=[{}] * chains,
        rngs=np.random.default_rng(1).spawn(chains),
        step=None,
        tune=0,
    )
    return traces


def test_chains_of_a_killed_process_are_begun_again(monkeypatch, tmp_path):
    flag = str(tmp_path / "killed")
    delayed = joblib.delayed(killed_once)
    monkeypatch.setattr(joblib, "delayed", lambda _: lambda task: delayed(task, flag))
    with pytest.warns(
        UserWarning, match=r"A process ended before its chain was complete.*drawn again, with"
    ):
        traces = given_out(chain_runs.Runner(2, False), 3)
    assert [trace[0][0]["x"][0] for trace in traces] == [0, 1, 2]


@pytest.mark.full
def test_a_chain_whose_process_always_ends_is_left_out(monkeypatch, tmp_path):
    """The others are drawn in the end, one by one."""
    delayed = joblib.delayed(killed_once)
    monkeypatch.setattr(joblib, "delayed", lambda _: lambda task: delayed(task, "/no/such/folder"))
    with pytest.warns(UserWarning) as caught:
        traces = given_out(chain_runs.Runner(2, False), 3)
    assert [[point["x"][0] for point, _ in trace] for trace in traces] == [[0], [], [2]]
    said = " ".join(str(one.message) for one in caught)
    assert re.search(
        r"drawn again, with.*one after the other.*left out: chain 1.*2 of 3", said, re.S
    )
