"""A run that ends before its time goes on from its checkpoint with the draws of one whole run."""

import os
import resource
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import joblib
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from joblib.externals import loky
from support.small_models import FAST, assert_same_draws, bart_model, counts_model, soft_model

import pymc_trees as pmt
from pymc_trees.inference.chains import run as chain_runs
from pymc_trees.inference.chains import states
from pymc_trees.inference.chains.run import ChainPiece, run_chain
from pymc_trees.inference.chains.states import GROUP

pytestmark = pytest.mark.usefixtures("quick_compile")
TUNE, DRAWS = 8, 6
RUN = {"draws": DRAWS, "tune": TUNE, "random_seed": 5, **FAST}
GO_ON = {"cores": 1, **FAST}


def with_nuts():
    """NUTS diverges here and there, and counts how often."""
    with bart_model() as model:
        shift = pm.Normal("shift")
        width = pm.Exponential("width")
        pm.Normal("z", shift, width, observed=np.ones(3))
    return model


@pytest.fixture(scope="module")
def model(quick_compile):
    return bart_model(sigma=None)


@pytest.fixture(scope="module")
def expected(model):
    with model:
        return pm.sample(chains=2, cores=1, **RUN)


def drawn(stored):
    return stored["posterior"].sizes["draw"] if "posterior" in stored.children else 0


def assert_goes_on(path, model, expected, **options):
    """From a file to the draws of the whole run; how many the file had."""
    with xr.open_datatree(path) as stored:
        found = pmt.resume(stored, model, DRAWS - drawn(stored), **GO_ON, **options)
        assert_same_draws(found, expected)
        return drawn(stored)


@pytest.fixture
def written(monkeypatch, tmp_path):
    """Copies of what checkpoints write, one after the other."""
    found = []

    def save(idata, path):
        found.append(pmt.save(idata, tmp_path / f"write {len(found)}.nc"))
        return pmt.save(idata, path)

    monkeypatch.setattr(states, "save", save)
    return found


full = pytest.mark.full
CASES = {
    "noise": (lambda: bart_model(sigma=None), {}),
    "all tuning kept": (lambda: bart_model(sigma=None), {"discard_tuned_samples": False}),
    "some variables": (lambda: bart_model(sigma=None), {"var_names": ["mu_forest"]}),
    "NUTS": (with_nuts, {}),
    "soft": (soft_model, {}),
    "screened": (counts_model, {}),
    "flatter posteriors": (lambda: bart_model(sigma=None), {"step": 2}),
}


@pytest.mark.parametrize(
    "case", [case if case == "noise" else pytest.param(case, marks=full) for case in CASES]
)
def test_every_checkpoint_goes_on(case, written, tmp_path):
    """Those written in tuning too, and one at its very end."""
    build, options = CASES[case]
    with build() as model:
        if "step" in options:
            options = {"step": pmt.Hybrid(temperatures=options["step"])}
        # pm.sample keeps no states of some variables
        make = pmt.sample_chains if "var_names" in options else pm.sample
        whole = make(chains=2, cores=1, **RUN, **options)
        file = tmp_path / "run.nc"
        found = pmt.sample_chains(chains=2, cores=1, checkpoint=file, every=4, **RUN, **options)
    assert_same_draws(found, whole)
    for k, path in enumerate(written[:-1]):
        assert assert_goes_on(path, model, whole, **options) == max(0, 4 * (k + 1) - TUNE)
    with xr.open_datatree(file) as stored:
        assert stored.identical(found)
    assert len(written) == 4


def test_a_run_that_goes_on_writes_checkpoints_of_all_its_draws(model, expected, written, tmp_path):
    """In the file that it goes on from, too."""
    file = tmp_path / "run.nc"
    pmt.sample_chains(model, 2, cores=1, checkpoint=file, every=10, **RUN)
    written[0].replace(file)
    with xr.open_datatree(file) as stored:
        assert drawn(stored) == 2
        found = pmt.resume(stored, model, 4, checkpoint=file, every=2, **GO_ON)
    assert_same_draws(found, expected)
    assert_goes_on(written[2], model, expected)
    with xr.open_datatree(file) as stored:
        assert stored.identical(found)


DRIVER = """
import os, signal, sys
import pytensor
import pymc_trees as pmt
sys.path.insert(0, sys.argv[3])
from support.small_models import FAST, bart_model

count, flush = 0, os.fsync
def fsync(handle):
    global count
    count += 1
    if count == 2 * int(sys.argv[2]) - 1:  # of the file and of its folder
        os.kill(os.getpid(), signal.SIGKILL)
    flush(handle)
os.fsync = fsync
with pytensor.config.change_flags(mode="FAST_COMPILE"), bart_model(sigma=None) as model:
    pmt.sample_chains(
        model, 2, draws=6, tune=8, random_seed=5, cores=1, checkpoint=sys.argv[1], every=5, **FAST
    )
"""


@pytest.mark.parametrize(("write", "has"), [(2, 0), pytest.param(3, 2, marks=full)])
def test_a_killed_driver(write, has, model, expected, tmp_path):
    """While it writes, which leaves the checkpoint before."""
    file, tests = tmp_path / "run.nc", Path(__file__).parents[1]
    run = [sys.executable, "-c", DRIVER, file, str(write), tests]
    done = subprocess.run(run, cwd=tests.parent, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(list(tmp_path.iterdir())) == 2
    assert assert_goes_on(file, model, expected) == has


def killed_once(task, flag):
    """End the process of the second piece of chain 1."""
    if task.chain == 1 and task.resume_from is not None and not Path(flag).exists():
        Path(flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return run_chain(task)


@full
def test_a_killed_worker(model, expected, monkeypatch, tmp_path):
    """To the last bit where workers compile as this process does."""
    flags = f"{os.environ.get('PYTENSOR_FLAGS', '')},mode=FAST_COMPILE"
    monkeypatch.setenv("PYTENSOR_FLAGS", flags.lstrip(","))
    loky.get_reusable_executor().shutdown()  # processes that were started before
    delayed, flag = joblib.delayed(killed_once), str(tmp_path / "killed")
    monkeypatch.setattr(joblib, "delayed", lambda _: lambda task: delayed(task, flag))
    file = tmp_path / "run.nc"
    with pytest.warns(
        UserWarning, match=r"A process ended before its chain was complete.*drawn again"
    ):
        found = pmt.sample_chains(model, 2, cores=2, checkpoint=file, every=5, **RUN)
    loky.get_reusable_executor().shutdown()
    assert_same_draws(found, expected)
    with xr.open_datatree(file) as stored:
        assert stored.identical(found)


def test_a_full_disk_costs_a_checkpoint_and_no_draws(model, expected, monkeypatch, tmp_path):
    file, contents = tmp_path / "run.nc", []

    def save(idata, path):
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        if len(contents) == 1:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        try:
            return pmt.save(idata, path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            contents.append(file.read_bytes())

    monkeypatch.setattr(states, "save", save)
    with pytest.warns(UserWarning, match=r"this one was not written.*is unchanged") as said:
        found = pmt.sample_chains(model, 2, cores=1, checkpoint=file, every=5, **RUN)
    assert len(said) == 1
    assert contents[0] == contents[1] != contents[2]
    assert list(tmp_path.iterdir()) == [file]
    assert_same_draws(found, expected)
    with xr.open_datatree(file) as stored:
        assert stored.identical(found)


def test_an_interrupt_leaves_the_file_and_a_result_that_goes_on(
    model, expected, monkeypatch, tmp_path
):
    def run(task):
        if task.chain == 1 and task.resume_from is not None and task.resume_from.tuning is None:
            signal.raise_signal(signal.SIGINT)
        return run_chain(task)

    monkeypatch.setattr(chain_runs, "run_chain", run)
    file = tmp_path / "run.nc"
    with pytest.warns(UserWarning, match="Interrupted.*up to its last checkpoint"):
        found = pmt.sample_chains(model, 2, cores=1, checkpoint=file, every=4, **RUN)
    monkeypatch.undo()
    assert drawn(found) == 4
    more = pmt.resume(found, model, DRAWS - 4, **GO_ON)
    assert_same_draws(more, expected)
    assert assert_goes_on(file, model, expected) == 4


def test_an_interrupt_in_tuning_goes_on_with_chains_of_differing_length(
    model, expected, monkeypatch, tmp_path
):
    def run(task):
        if task.chain == 1 and task.resume_from is not None:
            signal.raise_signal(signal.SIGINT)
        return run_chain(task)

    monkeypatch.setattr(chain_runs, "run_chain", run)
    with pytest.warns(UserWarning, match="Interrupted|stopped during tuning"):
        found = pmt.sample_chains(model, 2, cores=1, checkpoint=tmp_path / "run.nc", every=3, **RUN)
    monkeypatch.undo()
    assert list(found.children) == [GROUP]
    assert_same_draws(pmt.resume(found, model, DRAWS, **GO_ON), expected)


def test_an_interrupt_of_pymc_in_tuning(model, expected):
    def callback(trace, draw):
        if draw.draw_idx == 4:
            signal.raise_signal(signal.SIGINT)

    with model, pytest.warns(UserWarning, match="stopped during tuning.*resume continues"):
        found = pm.sample(chains=1, cores=1, callback=callback, **RUN)
    more = pmt.resume(found, model, DRAWS, **GO_ON)
    np.testing.assert_array_equal(
        more.posterior["mu_forest"][0], expected.posterior["mu_forest"][0]
    )


def test_a_chain_that_fails_is_left_out_of_what_goes_on(model, expected, monkeypatch, tmp_path):
    short = pmt.sample_chains(model, 2, cores=1, **{**RUN, "draws": 2})

    def run(task):
        if task.chain == 0 and task.is_last:
            return ChainPiece(0, [], [], ValueError("no such number."))
        return run_chain(task)

    monkeypatch.setattr(chain_runs, "run_chain", run)
    with pytest.warns(UserWarning, match=r"left out: chain 0"):
        found = pmt.resume(short, model, 4, checkpoint=tmp_path / "run.nc", every=2, **GO_ON)
    assert list(found.posterior["chain"]) == [1]
    assert list(found[GROUP].children) == ["chain_1"]
    np.testing.assert_array_equal(found.posterior["mu_forest"], expected.posterior["mu_forest"][1:])


@pytest.mark.parametrize("at", [pytest.param(3, marks=full), TUNE + 2])
def test_an_interrupt_of_pymcs_processes(at, model, expected):
    """Each process hands over its state, in tuning too."""

    def callback(trace, draw):
        if draw.draw_idx == at:
            os.kill(os.getpid(), signal.SIGINT)

    with model, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pm.sample(chains=2, cores=2, callback=callback, **RUN)
        more = pmt.resume(found, model, DRAWS - drawn(found), **GO_ON)
    chains = [int(name.removeprefix("chain_")) for name in found[GROUP].children]
    assert (at < TUNE) == (drawn(found) == 0)
    np.testing.assert_allclose(
        more.posterior["mu"], expected.posterior["mu"].isel(chain=sorted(chains)), rtol=1e-9
    )


def test_the_number_of_divergences_is_part_of_the_state():
    """NUTS leaves it out of its own."""
    made, new = (SimpleNamespace(divergences=n, sampling_state=n) for n in (3, 0))
    states.restore_state(new, states.state_of(made))
    assert new == made
