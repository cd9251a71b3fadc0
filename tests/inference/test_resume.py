"""A run that goes on makes the draws of one that was never stopped."""

import json
import signal
from types import SimpleNamespace

import numpy as np
import pymc as pm
import pymc.sampling.mcmc
import pytest
import xarray as xr
from pymc.backends import _ZarrTraceBase
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


@pytest.fixture(scope="module")
def three():
    """A model, three chains of six draws, and of twelve."""
    with bart_model(sigma=None) as model:
        run = {"chains": 3, "cores": 1, **RUN}
        return model, pm.sample(6, **run), pm.sample(12, **run)


SOME = {
    "one": {"chain": [1]},
    "another order": {"chain": [2, 0]},
    "no axis": {"chain": 2},
    "without the first draws": {"draw": slice(2, None)},
}


@pytest.mark.parametrize("some", SOME)
def test_some_chains_go_on(three, some, tmp_path):
    """With the draws of their own, from a file and a second time too."""
    model, short, expected = three
    part = short.isel(SOME[some])
    part["prior"] = xr.DataTree(short.posterior.to_dataset().isel(chain=[0]))
    before = part.copy(deep=True)
    once = pmt.resume(part, model, 3, cores=1, **FAST)
    assert part.identical(before)
    pmt.save(once, tmp_path / "fit.nc")
    with xr.open_datatree(tmp_path / "fit.nc") as stored:
        twice = pmt.resume(stored, model, 3, cores=1, **FAST)
    chains = np.atleast_1d(part.posterior["chain"])
    assert list(twice.posterior["chain"]) == list(chains)
    wanted = expected.isel(SOME[some] | {"chain": chains})
    assert_same_draws(twice, wanted)
    again = pmt.resume(once.isel(chain=[-1]), model, 3, cores=1, **FAST)
    assert_same_draws(again, wanted.isel(chain=[-1]))


def test_chains_that_are_not_those_of_the_states_are_refused(three):
    model, short, _ = three
    renamed = short.map_over_datasets(
        lambda group: group.assign_coords(chain=[1, 2, 3]) if "chain" in group.dims else group
    )
    for idata in (renamed, short.isel(chain=[0, 0])):
        with pytest.raises(ValueError, match="are not those whose states it holds, .0, 1, 2.:"):
            pmt.resume(idata, model, draws=2, cores=1, **FAST)


LACKING = {
    "the last": (slice(0, 3), "up to 5 it has 3 from 0 to 2"),
    "every second": (slice(None, None, 2), "up to 5 it has 3 from 0 to 4"),
    "every second up to the last": (slice(1, None, 2), "up to 5 it has 3 from 1 to 5"),
    "all": (slice(0, 0), "up to 5 it has none"),
}


@pytest.mark.parametrize("lacking", LACKING)
def test_draws_that_new_ones_would_not_follow_are_refused(three, lacking):
    model, short, _ = three
    kept, said = LACKING[lacking]
    with pytest.raises(ValueError, match=f"{said}. Resume the whole result"):
        pmt.resume(short.isel(draw=kept), model, draws=2, cores=1, **FAST)
    more = pmt.resume(short, model, draws=3, cores=1, **FAST)
    with pytest.raises(ValueError, match="up to 8 it has 8 from 0 to 7"):
        pmt.resume(more.isel(draw=slice(0, 8)), model, draws=3, cores=1, **FAST)


def test_chains_of_an_interrupted_run_have_the_states_of_their_own(three):
    """PyMC numbers those that it keeps from zero: of chains 1 and 2 the latter is called 1."""
    model, short, expected = three
    kept = short.isel(chain=[1, 2])
    kept = kept.map_over_datasets(
        lambda group: group.assign_coords(chain=[0, 1]) if "chain" in group.dims else group
    )
    del kept[states.GROUP]["chain_0"]
    states.note_ends(kept, states.numbers_of_chains(kept))
    found = pmt.resume(kept.isel(chain=[1]), model, 6, cores=1, **FAST)
    assert list(found.posterior["chain"]) == [1]
    assert_same_draws(found, expected.isel(chain=[2]))


class OnDisk(_ZarrTraceBase):
    """As PyMC's ZarrTrace, which holds the traces of all chains and cannot be iterated."""

    def __init__(self, chains, tuning_steps, idata):
        self.straces, self.tuning_steps, self.posterior = [None] * chains, tuning_steps, idata
        self._sampling_state = SimpleNamespace(draw_idx=np.full(chains, tuning_steps + 6))

    def split_warmup_groups(self):
        """Do nothing: there are none."""

    def to_inferencedata(self, save_warmup):
        """The draws."""
        return xr.DataTree.from_dict({"posterior": self.posterior})


@pytest.mark.parametrize("with_trees", [True, False])
def test_draws_on_disk_come_without_states(three, with_trees):
    model, short, _ = three
    model = model if with_trees else pm.Model()
    result = pymc.sampling.mcmc._sample_return(
        run=None, traces=OnDisk(3, 8, short.posterior.to_dataset()), tune=8, t_sampling=1.0,
        discard_tuned_samples=True, compute_convergence_checks=False, return_inferencedata=True,
        keep_warning_stat=False, idata_kwargs={}, model=model, quiet=True,
    )  # fmt: skip
    assert set(result.children) == {"posterior", *(["forests"] if with_trees else [])}


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
