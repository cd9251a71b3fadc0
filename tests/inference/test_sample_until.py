"""A run that ends by itself makes the draws of one that is as long, and says why it ended."""

import json
import logging

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from support.small_models import FAST, assert_same_draws, bart_model

import pymc_trees as pmt
from pymc_trees.inference.chains import until
from pymc_trees.inference.chains.sample import resume
from pymc_trees.posterior.goals import Goal, Reached, reached, values_at, variables_of, worst
from pymc_trees.posterior.pool import judge_pool

pytestmark = pytest.mark.usefixtures("quick_compile")
RUN = {"tune": 8, "random_seed": 5, "chains": 2, "cores": 1}


def about(idata):
    return json.loads(idata.attrs["sample_until"])


def as_one_run(idata, model):
    """The draws of a plain run that is as long."""
    return pm.sample(idata.posterior.sizes["draw"], model=model, **RUN, **FAST)


def test_draws_are_those_of_one_run():
    with bart_model(sigma=None) as model:
        found = pmt.sample_until(r_hat=2.0, ess=25, draws=6, progressbar=False, **RUN)
    assert found.posterior.sizes["draw"] > 6
    said = about(found)
    assert said["ended"] == "reached" and said["asked"]["of"] == ["mu", "sigma"]
    assert all(one["ess"] >= 25 and one["by"] == "R-hat" for one in said["reached"].values())
    assert_same_draws(found, as_one_run(found, model))


def test_a_call_goes_on_where_the_time_of_another_was_over(tmp_path):
    path = tmp_path / "run.nc"
    goal = {"r_hat": 2.0, "ess": 15, "draws": 6, "progressbar": False, "checkpoint": path}
    with bart_model(sigma=None) as model:
        with pytest.warns(UserWarning, match=r"ended before its goal \(time\): it was still tun"):
            short = pmt.sample_until(max_time=1e-6, **goal, **RUN)
        assert "posterior" not in short.children and about(short)["ended"] == "time"
        found = pmt.sample_until(**goal, **RUN)
        assert about(found)["ended"] == "reached"
        assert_same_draws(found, as_one_run(found, model))
        again = pmt.sample_until(**goal, **RUN)  # reached already
        assert again.posterior.sizes == found.posterior.sizes
        more = pmt.sample_until(**goal | {"ess": 150}, **RUN)
        assert more.posterior.sizes["draw"] > found.posterior.sizes["draw"]
        assert_same_draws(more, as_one_run(more, model))


@pytest.mark.parametrize("at", [3, 8])
def test_an_interrupt_keeps_the_draws(at, monkeypatch):
    """In the first piece, after tuning, and in a later one."""
    looks = []

    def write_traces(self, *args):
        looks.append(None)
        if len(looks) == at:
            raise KeyboardInterrupt

    monkeypatch.setattr(until._Watch, "write_traces", write_traces)
    monkeypatch.setattr(until._Run, "_is_hopeless", lambda *args: False)
    with bart_model(sigma=None):
        options = RUN | {"tune": 2}
        with pytest.warns(UserWarning, match=r"ended before its goal \(interrupted\)"):
            found = pmt.sample_until(ess=1e5, draws=10, progressbar=False, **options)
        expected = pm.sample(found.posterior.sizes["draw"], **options, **FAST)
    assert_same_draws(found, expected)
    assert found.posterior.sizes["chain"] == 2


def test_an_interrupt_while_chains_are_judged_keeps_the_draws(monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(until, "reached", interrupted)
    with bart_model(sigma=None):
        with pytest.warns(UserWarning, match=r"\(interrupted\): draws were not judged"):
            found = pmt.sample_until(ess=1e5, draws=6, progressbar=False, **RUN)
        expected = pm.sample(6, **RUN, **FAST)
    assert_same_draws(found, expected)


def _fails(idata, *args, **options):
    raise RuntimeError("mu outgrew max_nodes=9")


def _loses_a_chain(idata, model, n, checkpoint, **options):
    new = resume(idata, model, n, checkpoint=checkpoint, **options).isel(chain=[0])
    checkpoint.write(new)
    return new


@pytest.mark.parametrize("resumed", [_fails, _loses_a_chain])
def test_a_chain_that_fails_keeps_the_draws_of_all(resumed, monkeypatch, tmp_path, caplog):
    """In the second piece; the file holds all chains, and another call goes on from it."""
    path = tmp_path / "run.nc"
    goal = {"ess": 40, "r_hat": 2.0, "draws": 6, "progressbar": False, "checkpoint": path}
    monkeypatch.setattr(until._Run, "_is_hopeless", lambda *args: False)
    with bart_model(sigma=None) as model:
        with monkeypatch.context() as patched, pytest.warns(UserWarning, match=r"goal \(failed\)"):
            patched.setattr(until, "resume", resumed)
            found = pmt.sample_until(**goal, **RUN)
        assert about(found)["ended"] == "failed" and ("outgrew" in caplog.text) is (
            resumed is _fails
        )
        assert dict(found.posterior.sizes) | {"chain": 2, "draw": 6} == dict(found.posterior.sizes)
        assert_same_draws(found, as_one_run(found, model))
        more = pmt.sample_until(**goal, **RUN)
        assert about(more)["ended"] == "reached"
        assert_same_draws(more, as_one_run(more, model))


@pytest.mark.parametrize("other", ["y", "m"])
@pytest.mark.parametrize("draws", [6, 0])
def test_a_file_of_another_model_or_of_other_data_is_refused(other, draws, tmp_path):
    """Where a goal was reached, and where the run ended in tuning."""
    path = tmp_path / "run.nc"
    goal = {"r_hat": 9.0, "ess": 1, "draws": 6, "progressbar": False, "checkpoint": path}
    with bart_model(sigma=None):
        if draws:
            pmt.sample_until(**goal, **RUN)
        else:
            with pytest.warns(UserWarning, match="still tuning"):
                pmt.sample_until(max_time=1e-6, **goal, **RUN)
    with bart_model(sigma=None, m=5 if other == "y" else 6, max_nodes=5 * 59) as model:
        if other == "y":
            model.rvs_to_values[model["y"]].data[0] += 1.0
        with pytest.raises(ValueError, match=r"of another model, or of other data|other declarat"):
            pmt.sample_until(**goal, **RUN)


def test_a_goal_out_of_reach_ends_the_run(caplog):
    caplog.set_level(logging.INFO, "pymc.trees")
    with bart_model(sigma=None):
        with pytest.warns(UserWarning, match=r"\(cannot\): .*asked 1e\+07.* help: more chains"):
            found = pmt.sample_until(ess=1e7, draws=6, pooled=None, **RUN)
    assert about(found)["ended"] == "cannot" and found.posterior.sizes["draw"] == 12
    assert any("12 draws of each chain after" in r.getMessage() for r in caplog.records)


def test_the_most_draws_end_the_run():
    with bart_model(sigma=None), pytest.warns(UserWarning, match=r"goal \(draws\)"):
        found = pmt.sample_until(ess=60, draws=6, max_draws=9, progressbar=False, **RUN)
    assert found.posterior.sizes["draw"] == 9


# -------------------------------------------------------------------------------------- Judgements


def made(name="f", r_hat=1.3, ess=20.0, draws=100, pool=None):
    return Reached(name, r_hat, ess, draws, pool)


def pool_of(between, narrows=False):
    rng = np.random.default_rng(1)
    f = rng.normal(size=(4, 400, 30)) + between * rng.normal(size=(4, 1, 30))
    return judge_pool(f * (np.linspace(2, 1, 400)[:, None] if narrows else 1.0))


def test_what_is_needed():
    goal = Goal(1.01, 400, 0.03)
    assert made(r_hat=1.01, ess=100.0).needs(goal) == 400
    assert made(r_hat=1.02, ess=400.0).needs(goal) == pytest.approx(100 * 0.0404 / 0.0201)
    assert made(r_hat=1.0, ess=500.0).needs(goal) == 100
    assert made(r_hat=np.inf, ess=0.0).needs(goal) == np.inf


def test_the_estimate_is_right_for_independent_draws():
    """R-hat**2 - 1 and 1 / ESS of chains with lasting autocorrelation fall as the draws grow."""
    from scipy.signal import lfilter

    noise = np.random.default_rng(1).standard_normal((4, 16_000, 40))
    f = lfilter([1.0], [1.0, -0.9], noise, axis=1)
    few, many = (Reached("f", *worst(f[:, :n]), n, None) for n in (1000, 16_000))
    goal = Goal(many.r_hat, many.ess, None)
    assert few.needs(goal) == pytest.approx(16_000, rel=0.5)


def ended(found, left, rate=0.1, looks=2, pooled=0.03, most=10_000, since=0.0):
    run = until._Run(None, Goal(1.01, 400, pooled), ["f"], until.monotonic() + left, None)
    run.seconds_a_draw = rate
    run.begun -= since
    return run._ended(found, looks, found[0].draws, most)


def test_when_it_ends():
    mixed, flat, falls = made(r_hat=1.0, ess=500.0), pool_of(0.8), pool_of(0.8, narrows=True)
    frozen = pool_of(5.0)
    assert (flat.verdict, falls.verdict, frozen.verdict) == ("pool", "warm-up", "few")
    assert ended([mixed], 100) == "reached"
    assert ended([made(pool=flat)], 1e4) == ""  # R-hat can be reached
    assert ended([made(pool=flat)], 50) == "reached"  # it cannot, and the pool can be used
    assert ended([made(pool=flat)], 50, pooled=None) == "cannot"
    assert ended([made(pool=falls)], 50) == ""
    assert ended([made(pool=falls)], -1) == "time"
    assert ended([made(pool=frozen)], 10) == "cannot"
    assert ended([made(pool=frozen)], 10, looks=1) == ""
    assert ended([made("sigma")], 10) == "cannot"
    assert ended([made("sigma")], 10, since=90) == ""  # the little that is left is used up
    assert ended([made(pool=flat), made("sigma")], 10) == "cannot"
    assert ended([made("sigma")], 1e4, most=100) == "draws"


def test_worst_is_as_arviz_has_it():
    f = np.random.default_rng(1).normal(size=(3, 50, 4))
    f[..., 3] = 1.0  # the same everywhere: not judged
    array = xr.DataArray(f[..., :3], dims=("chain", "draw", "row"))
    r_hat, ess = worst(f)
    assert r_hat == float(az.rhat(array).max())
    assert ess == min(float(az.ess(array, method=m).min()) for m in ("bulk", "tail"))
    f[1, :, 0] = 0.3  # a chain that never moves
    assert worst(f) == (np.inf, 0.0)


def test_names():
    with bart_model(sigma=None) as model:
        pm.Deterministic("double", 2 * model["mu"])
        idata = pm.sample(5, **RUN, **FAST)
    assert variables_of(model, None) == ["mu", "sigma"]
    assert variables_of(model, ["mu_forest", "mu", "double"]) == ["mu", "double"]
    with pytest.raises(ValueError, match=r"of=\['nu'\]: choose from \['double', 'mu', 'sigma'\]"):
        variables_of(model, ["nu"])
    mu, is_function = values_at(idata, model, "mu")
    double, too = values_at(idata, model, "double")
    assert is_function and too and not values_at(idata, model, "sigma")[1]
    np.testing.assert_allclose(double, 2 * mu, atol=1e-9)
    found = reached(idata, model, ["mu", "sigma"])
    assert [one.draws for one in found] == [5, 5] and found[1].pool is None
    lean = xr.DataTree.from_dict({"posterior": idata.posterior.to_dataset().drop_vars("double")})
    lean["sample_stats"] = idata["sample_stats"]
    again, of_trees = values_at(lean, model, "double")  # computed from the trees
    assert of_trees
    np.testing.assert_allclose(again, double, atol=1e-9)
    lean["posterior"] = lean["posterior"].to_dataset().drop_vars("sigma")
    with pytest.raises(ValueError, match="not among the draws"):
        values_at(lean, model, "sigma")


def test_what_cannot_be_judged_is_refused_before_the_run(monkeypatch):
    with bart_model(sigma=None) as model:
        pm.Deterministic("double", 2 * model["mu"])
    everything = ["mu", "sigma"]
    assert variables_of(model, None, ["mu_forest"]) == ["mu"]
    assert variables_of(model, None, everything) == everything
    assert variables_of(model, ["mu", "double"], "mu_forest") == ["mu", "double"]
    monkeypatch.setattr(
        until, "sample_chains", lambda *given, **more: pytest.fail("draws are made")
    )
    for of, kept in (
        (["sigma"], ["mu"]),
        (["double"], ["mu"]),
        (["mu"], "sigma"),
        (None, "double"),
    ):
        with pytest.raises(ValueError, match=r"var_names=.* could not be judged"):
            pmt.sample_until(model, of=of, var_names=kept)


@pytest.mark.parametrize("kept", [["mu", "sigma"], ["mu_forest"]])
def test_a_function_is_judged_by_what_is_recorded(kept):
    with bart_model(sigma=None) as model:
        given = {"tune": 2, "draws": 4, "max_draws": 6, "chains": 2, "cores": 1, "random_seed": 5}
        with pytest.warns(UserWarning, match="ended before its goal"):
            idata = pmt.sample_until(model, 1.0001, 900, var_names=kept, progressbar=False, **given)
    assert set(idata.posterior.data_vars) == set(kept) and idata.posterior.sizes["draw"] == 6
    assert about(idata)["asked"]["of"] == (kept if "mu" in kept else ["mu"])


def test_times_and_files(tmp_path):
    assert until.seconds_of("1.5min") == 90 and until.seconds_of("2h") == 7200
    assert until.seconds_of(30) == 30
    with pytest.raises(ValueError, match="max_time='soon': give seconds"):
        until.seconds_of("soon")
    xr.DataTree().to_netcdf(tmp_path / "empty.nc", engine="h5netcdf")
    with bart_model(), pytest.raises(ValueError, match="holds no states from which chains go on"):
        pmt.sample_until(checkpoint=tmp_path / "empty.nc")
