"""A run that goes on makes the draws of one that was never stopped."""

import json
import signal

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from support.chains.jumps import weak_model, weak_step
from support.small_models import FAST, assert_same_draws, bart_model, counts_model, soft_model
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.inference.chains import states

pytestmark = pytest.mark.usefixtures("quick_compile")
RUN = {"tune": 8, "random_seed": 5, **FAST}


def with_noise():
    return bart_model(sigma=None)


def with_nuts():
    with bart_model() as model:
        shift = pm.Normal("shift")
        pm.Normal("z", shift, 1.0, observed=np.ones(3))
    return model


CASES = {
    "noise": (with_noise, {}),
    "NUTS": (with_nuts, {}),
    "particles": (with_noise, {"step": pmt.ParticleGibbs}),
    "soft": (soft_model, {}),
    "screened": (counts_model, {}),
}


@pytest.mark.parametrize("case", tiers(CASES, quick=set(CASES) - {"soft"}))
def test_it_is_the_longer_run(case, tmp_path):
    build, options = CASES[case]
    with build() as model:
        options = {name: make() for name, make in options.items()}
        expected = pm.sample(9, chains=2, cores=1, **RUN, **options)
        short = pm.sample(4, chains=2, cores=1, **RUN, **options)
    before = short.copy(deep=True)
    pmt.save(short, tmp_path / "fit.nc")
    with xr.open_datatree(tmp_path / "fit.nc") as stored:
        once = pmt.resume(stored, model, 2, cores=1, **FAST, **options)
    assert_same_draws(pmt.resume(once, model, draws=3, cores=1, **FAST, **options), expected)
    assert short.identical(before)


def test_after_processes_of_pymc_and_of_joblib():
    with bart_model(sigma=None) as model:
        expected = pm.sample(7, chains=2, cores=1, **RUN)
        in_processes = pm.sample(4, chains=2, cores=2, **RUN)
        by_joblib = pmt.sample_chains(chains=2, draws=4, cores=1, **RUN)
    for short in (in_processes, by_joblib):
        found = pmt.resume(short, model, 3, cores=1, **FAST)
        np.testing.assert_allclose(found.posterior["mu"], expected.posterior["mu"], rtol=1e-9)
    assert_same_draws(pmt.resume(by_joblib, model, 3, cores=1, **FAST), expected)


def interrupt_at(chain, number):
    def callback(trace, draw):
        if draw.chain == chain and draw.draw_idx == number:
            signal.raise_signal(signal.SIGINT)

    return callback


@pytest.mark.parametrize("at", [(0, 11), (1, 11)])
def test_an_interrupted_run_goes_on(at):
    """Chain 1 stops short of chain 0, whose draws ahead are not lost."""
    with bart_model(sigma=None) as model:
        expected = pm.sample(12, chains=2, cores=1, **RUN)
        run = {"chains": 2, "cores": 1, **RUN}
        short = pm.sample(6, callback=interrupt_at(*at), **run)
    kept = short.posterior.sizes
    assert kept["draw"] < 6 or kept["chain"] < 2
    found = pmt.resume(short, model, draws=12 - kept["draw"], cores=1, **FAST)
    chains = found.posterior["chain"]
    for name in ("mu", "mu_forest"):
        np.testing.assert_array_equal(
            found.posterior[name], expected.posterior[name].sel(chain=chains)
        )


def test_other_steps_and_options_are_refused():
    with bart_model(sigma=None) as model:
        idata = pm.sample(3, chains=1, cores=1, **RUN)
        with pytest.raises(ValueError, match=r"other step methods, \['Hybrid.*step="):
            pmt.resume(idata, draws=2, cores=1, step=pmt.CGM(), **FAST)
    del idata[states.GROUP]
    with pytest.raises(ValueError, match="states of the step methods are missing"):
        pmt.resume(idata, model, draws=2)


def test_other_data_are_refused():
    with bart_model(sigma=None) as model:
        idata = pm.sample(3, chains=1, cores=1, **RUN)
        kept = model["X"].get_value()
        pmt.set_data({"X": kept[::-1]})
        with pytest.raises(ValueError, match=r"other data: \['X'\] of the model differ"):
            pmt.resume(idata, draws=2, cores=1, **FAST)
        pmt.set_data({"X": kept})
        pmt.resume(idata, draws=2, cores=1, **FAST)
    idata.observed_data["y"] = -idata.observed_data["y"]
    with pytest.raises(ValueError, match=r"other data: \['y'\] of the model differ"):
        pmt.resume(idata, model, draws=2, cores=1, **FAST)


@pytest.mark.full
@pytest.mark.parametrize("other", [{"h": (0.3, 0.05)}, {"max_nodes": 127}])
def test_other_trees_are_refused(other):
    with weak_model(*weak_step(), direction="index"):
        step = pmt.RJHMC(warm_up=20, bridge=0)
        idata = pm.sample(3, chains=1, cores=1, step=[step], **RUN)
    with weak_model(*weak_step(), direction="index", **other):
        step = pmt.RJHMC(warm_up=20, bridge=0)
        with pytest.raises(ValueError, match="another declaration than mu_forest"):
            pmt.resume(idata, draws=2, cores=1, step=[step], **FAST)


def test_a_state_that_no_file_can_hold_costs_no_draws(monkeypatch):
    monkeypatch.setattr(
        "pymc_trees.inference.chains.states._names_of_steps", lambda step: {"a set"}
    )
    with bart_model(sigma=None) as model:
        idata = pm.sample(3, chains=1, cores=1, **RUN)
        assert idata.posterior.sizes["draw"] == 3
        with pytest.raises(ValueError, match="cannot be resumed.*holds a set"):
            pmt.resume(idata, model, draws=2)


def test_what_a_state_may_hold_comes_back():
    rng = np.random.default_rng(3)
    rng.random()
    state = {
        "numbers": [1, 2.5, float("inf"), True, None, "word", np.float32(0.1), np.int64(2**60)],
        "arrays": (np.arange(6).reshape(2, 3), np.empty((0, 2)), np.array(2.0), np.array([True])),
        ("a", 1): {3: [np.arange(2, dtype=np.uint8)]},
    }
    stored = states.to_dataset(state)
    again = states.from_dataset(stored)
    assert repr(again) == repr(state)
    assert json.loads(bytes(stored[states.WORDS].values))
    words = bytearray(b'{"tuple": [], "class": "os.system"}')
    stored[states.WORDS] = ("other", np.array(words, dtype=np.uint8))
    with pytest.raises(ValueError, match="not a known class of states"):
        states.from_dataset(stored)
    with pytest.raises(TypeError, match="holds a set"):
        states.to_dataset({"a": {1, 2}})
