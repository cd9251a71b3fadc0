"""A forest that outgrows its room stops the run with an error that holds the draws so far."""

import pickle

import numpy as np
import pymc as pm
import pytest
import small_models
from small_models import bart_model, forest_of

import pymc_trees as pmt
from pymc_trees.step_methods.too_large import ForestTooLargeError

pytestmark = pytest.mark.usefixtures("quick_compile")


def sample(*counts, **arguments):
    """By local moves, whose trees are slow to change size."""
    return small_models.sample(*counts, **{"step": pmt.CGM(), **arguments})


def small(room, **settings):
    """Model whose forest soon needs more nodes than it has."""
    return bart_model(n=30, m=5, alpha=0.95, beta=0.3, max_nodes=room, **settings)


@pytest.fixture(scope="module")
def free(quick_compile):
    """The same model with room for any forest, and how many nodes its chains need."""
    model = small(5 * 59)
    with model:
        idata = sample(60, 10)
    layout = forest_of(model)[1]
    nodes = (idata.posterior["mu_forest"].values[..., : layout.max_nodes, 0] != -2).sum(-1)
    return idata, nodes


@pytest.mark.parametrize("cores", [1, 2])
def test_error_names_max_nodes_and_holds_the_draws(free, cores):
    idata, nodes = free
    room = int(nodes[:, :30].max())  # overflows, but not before a chain has some draws
    assert nodes.max() > room
    with small(room), pytest.raises(ForestTooLargeError, match="mu_forest.*max_nodes") as caught:
        sample(60, 10, cores=cores, mp_ctx="fork")
    assert f"max_nodes={2 * room}" in str(caught.value) and "error.idata" in str(caught.value)
    kept = caught.value.idata
    assert kept.posterior.sizes["draw"] >= 10
    for chain in kept.posterior["chain"].values:
        mu = kept.posterior["mu"].sel(chain=chain).values
        # The very draws of the run with room, as far as they go.
        np.testing.assert_allclose(mu, idata.posterior["mu"].values[chain][: len(mu)])
    assert "n_leaves" in kept.sample_stats
    pmt.check_draws(kept, small(room))


def test_draws_of_tuning_are_kept_when_there_are_no_others(free):
    _, nodes = free
    room = int(nodes[:, :30].max())
    with small(room), pytest.raises(ForestTooLargeError) as caught:
        sample(5, 2000)
    assert caught.value.idata.warmup_posterior.sizes["draw"] > 5


def test_nothing_drawn_nothing_held():
    with small(5), pytest.raises(ForestTooLargeError, match="max_nodes=5") as caught:
        for seed in range(20):  # the first sweep that accepts a growth
            sample(1, 0, random_seed=seed)
    assert caught.value.idata is None and "error.idata" not in str(caught.value)


def test_other_errors_pass_unchanged(monkeypatch):
    def fail(self, point):
        raise ZeroDivisionError("other")

    monkeypatch.setattr(pmt.CGM, "step", fail)
    with small(295), pytest.raises(ZeroDivisionError, match="other"):
        sample(3, 3)


def test_the_error_travels_between_processes():
    error = pickle.loads(pickle.dumps(ForestTooLargeError("mu_forest outgrew")))
    assert isinstance(error, ForestTooLargeError) and str(error) == "mu_forest outgrew"


@pytest.mark.parametrize("cores", [1, 2])
def test_interruption_keeps_draws(cores):
    def stop(trace, draw):
        if draw.chain == 0 and draw.draw_idx == 24:
            raise KeyboardInterrupt

    with small(295) as model:
        idata = sample(1000, 10, callback=stop, cores=cores, mp_ctx="fork", chains=cores)
    assert 1 <= idata.posterior.sizes["draw"] <= 15
    pmt.check_draws(idata, model)


def test_a_prior_draw_that_does_not_fit():
    with small(9) as model, pytest.raises(ValueError, match="max_nodes"):
        pm.draw(model["mu_forest"], 50, random_seed=1)


def test_default_room_holds_prior_and_posterior():
    with bart_model(n=100, m=20, max_nodes=None, alpha=0.99, beta=0.5) as model:
        pm.draw(model["mu_forest"], 200, random_seed=1)
        sample(20, 60)
