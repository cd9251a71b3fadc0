"""A forest that outgrows its room stops the run with an error that holds the draws so far."""

import pickle

import numpy as np
import pymc as pm
import pytest
from support import small_models
from support.small_models import bart_model, forest_of
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.core.value.fields import Layout
from pymc_trees.distributions.capacity import (
    default_max_nodes,
    in_bytes,
    mondrian_max_nodes,
    too_small,
    with_capacity,
)
from pymc_trees.hooks.states import ForestTooLargeError, _draws_so_far

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


@pytest.mark.parametrize("cores", tiers([1, 2], quick=[1]))
def test_error_names_max_nodes_and_holds_the_draws(free, cores):
    idata, nodes = free
    room = int(nodes[:, :30].max())  # overflows, but not before a chain has some draws
    assert nodes.max() > room
    with small(room), pytest.raises(ForestTooLargeError, match="mu_forest.*max_nodes") as caught:
        sample(60, 10, cores=cores, mp_ctx="fork")
    text = str(caught.value)
    assert f"max_nodes={2 * room} (" in text and "max_nodes=295 (" in text  # 295 holds any forest
    assert "error.idata" in text
    kept = caught.value.idata
    assert kept.posterior.sizes["draw"] >= 10
    for chain in kept.posterior["chain"].values:
        mu = kept.posterior["mu"].sel(chain=chain).values
        # The very draws of the run with room, as far as they go.
        np.testing.assert_allclose(mu, idata.posterior["mu"].values[chain][: len(mu)])
    assert "n_leaves" in kept.sample_stats
    pmt.check_draws(kept, small(room))


def test_chains_of_the_held_draws_keep_their_numbers():
    with small(295) as model, pytest.warns(FutureWarning, match="return_inferencedata"):
        traces = sample(10, 0, return_inferencedata=False)._straces
    given = {"tune": 4, "discard_tuned_samples": True, "model": model}
    held = _draws_so_far(given | {"traces": [traces[0][:5], traces[1]]}, 1.0)
    assert held.posterior["chain"].values.tolist() == [1]
    np.testing.assert_array_equal(held.posterior["mu"][0], traces[1].get_values("mu")[4:])


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


@pytest.mark.parametrize("cores", tiers([1, 2], quick=[1]))
def test_interruption_keeps_draws(cores):
    def stop(trace, draw):
        if draw.chain == 0 and draw.draw_idx == 24:
            raise KeyboardInterrupt

    with small(295) as model:
        idata = sample(1000, 10, callback=stop, cores=cores, mp_ctx="fork", chains=cores)
    # Another process may be ahead of the one that is stopped, and the longest chain is kept.
    assert 1 <= idata.posterior.sizes["draw"] <= (15 if cores == 1 else 999)
    pmt.check_draws(idata, model)


def test_a_prior_draw_that_does_not_fit():
    with small(9) as model, pytest.raises(ValueError, match="max_nodes"):
        pm.draw(model["mu_forest"], 50, random_seed=1)


@pytest.mark.full
def test_default_room_holds_prior_and_posterior():
    with bart_model(n=100, m=20, max_nodes=None, alpha=0.99, beta=0.5) as model:
        pm.draw(model["mu_forest"], 200, random_seed=1)
        sample(20, 60)


# Most places in use at once over a run from stumps on Friedman's function, of `benchmarks.capacity`
# with sigma drawn: rows, trees, sd of the noise, places. Particles of single trees count.
USED = [
    (300, 50, 0.001, 240),
    (1000, 1, 0.01, 47),
    (1000, 50, 0.001, 362),
    (10_000, 1, 0.01, 497),
    (10_000, 50, 0.01, 876),
    (10_000, 200, 0.01, 1320),
    (50_000, 1, 0.01, 2265),
    (50_000, 50, 0.01, 2298),
    (200_000, 50, 1.0, 1692),
    (200_000, 50, 0.01, 4710),
]


@pytest.mark.parametrize("n, m, noise, used", USED)
def test_default_room_holds_what_was_measured(n, m, noise, used):
    assert default_max_nodes(m, n, 0.95, 2.0) >= 2 * used


def test_default_room_of_small_models_and_its_bounds():
    assert [default_max_nodes(m, 1000, 0.95, 2.0) for m in (50, 200)] == [803, 2611]
    assert default_max_nodes(1, 30, 0.95, 1.0) == 59  # any tree
    for n in (100, 1000, 2000, 10_000, 1_000_000):
        # What three times the prior mean calls for, or at most half a row per training row.
        assert default_max_nodes(50, n, 0.95, 2.0) <= max(803, n // 2)
    assert default_max_nodes(50, 600_000, 0.95, 2.0) == 64_675
    assert default_max_nodes(50, 10**8, 0.95, 2.0) == 65_536  # labels of 16 bits
    assert default_max_nodes(20_000, 10**6, 0.95, 2.0) > 65_536  # which the prior may exceed
    X = np.random.default_rng(0).random((5000, 2))
    assert mondrian_max_nodes(1, X, 1.0) == default_max_nodes(1, 5000, 0.95, 1.0)


def test_one_tree_on_many_rows_has_room():
    rng = np.random.default_rng(0)
    X = rng.random((20_000, 5))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 10 * X[:, 3] + rng.normal(0, 0.1, len(X))
    with pm.Model() as model:
        mu = pmt.BART("mu", X, y, m=1)
        pm.Normal("y", mu, 0.1, observed=y, shape=mu.shape)
        step = pmt.Hybrid(local_sweeps=1, rng=1)
    point = model.initial_point()
    for _ in range(3):
        point, (stats,) = step.step(point)
    assert stats["n_leaves"] > 130  # more than 213 nodes, room by the prior alone


@pytest.mark.parametrize("settings", [{"m": 10**8}, {"m": 5, "max_nodes": 10**12}])
def test_what_memory_cannot_hold_is_refused_with_its_bytes(settings):
    X = np.random.default_rng(0).random((1000, 2))
    with pm.Model(), pytest.raises(ValueError, match=r"m=.*max_nodes=.*one draw .* [GT]B") as error:
        pmt.BART("mu", X, leaf=pmt.NormalLeaf(0, 1), **settings)
    assert "memory" in str(error.value)


def test_hand_set_room_needs_memory_for_one_draw_only(monkeypatch):
    monkeypatch.setattr("pymc_trees.distributions.capacity._memory", lambda: 1e8)
    layout = Layout(50, 0, 1, 1000)
    assert with_capacity(layout, 10_000, lambda: 0).max_nodes == 10_000
    with pytest.raises(ValueError, match="161 kB, 1,000 draws 161 MB .* 100 MB"):
        with_capacity(layout, None, lambda: 10_000)


def test_bytes_in_words():
    numbers = (8, 999, 1000, 25_700, 1.6e6, 1.92e11, 5e15)
    words = ["8 bytes", "999 bytes", "1 kB", "25.7 kB", "1.6 MB", "192 GB", "5e+03 TB"]
    assert [in_bytes(n) for n in numbers] == words


def test_no_more_room_is_advised_than_any_forest_takes():
    text = too_small("mu_forest", Layout(2, 30, 1, 10))
    assert "max_nodes=38 (" in text and "holds any" not in text
