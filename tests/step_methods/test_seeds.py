"""The seed decides every draw, in this process and in others."""

import numpy as np
import pytest
from support.small_models import bart_model, sample

import pymc_trees as pmt


@pytest.fixture(scope="module")
def model(quick_compile):
    return bart_model(sigma=None)


@pytest.fixture(scope="module")
def here(model):
    """Draws in this process."""
    with model:
        return sample(8, 8)


def same(a, b):
    """Whether all draws and statistics that do not measure time agree."""
    for name in a.posterior.data_vars:
        np.testing.assert_array_equal(a.posterior[name].values, b.posterior[name].values)
    for name in ("n_leaves", "accept_grow", "variable_inclusion", "log_likelihood"):
        np.testing.assert_array_equal(a.sample_stats[name].values, b.sample_stats[name].values)
    return True


def test_same_seed(model, here):
    with model:
        assert same(sample(8, 8), here)


@pytest.mark.full
@pytest.mark.parametrize("mp_ctx", ["fork", "forkserver", "spawn"])
def test_other_processes_draw_the_same(model, here, mp_ctx):
    with model:
        assert same(sample(8, 8, cores=2, mp_ctx=mp_ctx), here)


def test_chains_and_seeds_differ(model, here):
    mu = here.posterior["mu"].values
    assert (np.abs(mu[0] - mu[1]).max(axis=-1) > 0).all()
    with model:
        other = sample(8, 8, random_seed=2)
    assert (np.abs(mu - other.posterior["mu"].values).max(axis=-1) > 0).all()


@pytest.mark.parametrize("step", [pmt.CGM, pmt.GrowPrune])
def test_explicit_steps(model, step):
    with model:
        one = sample(6, 6, step=[step()])
        two = sample(6, 6, step=[step()])
    assert same(one, two)


def test_one_instance_serves_several_runs(model):
    with model:
        step = pmt.CGM()
        assert same(sample(6, 6, step=[step]), sample(6, 6, step=[step]))


def test_no_global_random_state(model):
    with model:
        np.random.seed(1)  # noqa: NPY002
        one = sample(6, 6, random_seed=5)
        np.random.seed(2)  # noqa: NPY002
        two = sample(6, 6, random_seed=5)
        three, four = sample(6, 6, random_seed=None), sample(6, 6, random_seed=None)
    assert same(one, two)
    assert (three.posterior["mu"].values != four.posterior["mu"].values).any()
