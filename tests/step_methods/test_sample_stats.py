"""Statistics are plain numeric arrays, and mean what they say."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from scipy import stats
from support import twin
from support.small_models import FAST, bart_model, forest_of, sample, step_data

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")


@pytest.fixture(scope="module")
def fitted(quick_compile):
    model = bart_model(sigma=None, alpha=0.9, beta=0.7)
    with model:
        return model, sample(25, 20)


def test_shapes_and_types(fitted):
    found = fitted[1].sample_stats
    for name in ("accept_grow", "accept_prune", "accept_change", "accept_swap", "log_likelihood"):
        assert found[name].shape == (2, 25) and found[name].dtype == np.float64
    for name in ("n_leaves", "max_depth"):
        assert found[name].shape == (2, 25) and found[name].dtype == np.int64
    assert found["variable_inclusion"].shape == (2, 25, 2)
    assert np.issubdtype(found["variable_inclusion"].dtype, np.integer)
    for name in found.data_vars:
        assert found[name].dtype != object, name


def test_every_storage_is_told_of_plain_numbers(fitted):
    # PyMC's ZarrTrace stores by these, and what it takes for objects as pickles.
    declared = pmt.CGM(model=fitted[0]).stats_dtypes_shapes
    assert declared["variable_inclusion"] == (np.int64, [2])
    assert {dtype for dtype, _ in declared.values()} == {np.int64, np.float64}


def test_they_describe_the_drawn_forests(fitted):
    model, idata = fitted
    layout = forest_of(model)[1]
    found = idata.sample_stats

    def columns(tree):
        return [] if len(tree) == 1 else [tree[0], *columns(tree[2]), *columns(tree[3])]

    def depth(tree):
        return 0 if len(tree) == 1 else 1 + max(depth(tree[2]), depth(tree[3]))

    for at in np.ndindex(2, 25):
        trees = twin.read_trees(idata.posterior["mu_forest"].values[at], layout)
        assert found["n_leaves"].values[at] == twin.n_leaves(trees)
        assert found["max_depth"].values[at] == max(map(depth, trees))
        counts = np.bincount([c for t in trees for c in columns(t)], minlength=2)
        np.testing.assert_array_equal(found["variable_inclusion"].values[at], counts)
    assert found["max_depth"].max() > 2


def test_acceptance_is_a_share(fitted):
    found = fitted[1].sample_stats
    for move in ("grow", "prune", "change", "swap"):
        share = found[f"accept_{move}"].values
        share = share[~np.isnan(share)]
        assert share.size and (share >= 0).all() and (share <= 1).all()
        assert 0 < share.mean() < 1


@pytest.mark.full
def test_perturb_in_the_local_sweeps_of_hybrid():
    """Levels and missing cells among the columns."""
    X, y = step_data()
    table = pd.DataFrame({"number": X[:, 0], "level": list("abc" * 10)})
    table.loc[::5, "number"] = np.nan
    moves = {"grow": 0.2, "prune": 0.2, "change": 0.2, "perturb": 0.4}
    with pm.Model():
        mu = pmt.BART("mu", table, y, m=5)
        pm.Normal("y", mu, 0.5, observed=y, shape=mu.shape)
        found = sample(200, 50, step=pmt.Hybrid(moves=moves)).sample_stats
    assert 0 < found["accept_perturb"].mean() < 1


@pytest.mark.parametrize(
    "multiple", [1.0, -2.0, np.linspace(0.5, 2, 30), np.where(np.arange(30) % 7, 1.5, 0.0)]
)
def test_log_likelihood_of_the_rows(multiple):
    X, y = step_data()
    sd = np.linspace(0.4, 0.8, 30)
    with pm.Model():
        mu = pmt.BART("mu", X, y, m=5, max_nodes=295)
        pm.Normal("y", multiple * mu + 1.0, sd, observed=multiple * y + 1.0, shape=mu.shape)
        idata = sample(10, 10)
    mean = multiple * idata.posterior["mu"].values + 1.0
    expected = stats.norm.logpdf(multiple * y + 1.0, mean, sd).sum(-1)
    found = idata.sample_stats["log_likelihood"].values
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_they_can_be_saved(fitted, tmp_path):
    fitted[1].to_netcdf(tmp_path / "draws.nc", engine="h5netcdf")


def test_progress_bar(capsys):
    with bart_model(n=20, m=2):
        sample(5, 5, **{**FAST, "progressbar": True})
