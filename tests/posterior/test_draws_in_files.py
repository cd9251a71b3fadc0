"""Draws that are opened lazily: read once, not draw by draw; the answers are those in memory."""

from collections import Counter

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from support.fitted import frame
from support.small_models import sample
from support.tiers import tiers
from xarray.backends.h5netcdf_ import H5NetCDFArrayWrapper

import pymc_trees as pmt
from pymc_trees.posterior import draws as stored_draws
from pymc_trees.posterior.draws import StoredDraws
from pymc_trees.posterior.reading.functions import Expression

pytestmark = pytest.mark.usefixtures("quick_compile")

X, DRAWS = frame(), 20
QUIET = {"progressbar": False}


def by_pymc(idata, model):
    with model:
        found = pm.sample_posterior_predictive(idata, var_names=["mu"], random_seed=1, **QUIET)
    return found["posterior_predictive"]["mu"]


def of_scale_too(idata, model):
    """As those of `pymc_trees.survival` are, of other random variables than trees too."""
    expression = Expression(idata, model, model["scaled"], "scaled")
    return expression.reduced(expression.X, lambda f: f, {"row": np.arange(len(X))})


CALLS = {
    "check_draws": lambda idata, model: pmt.check_draws(idata, model),
    "summarise_function": lambda *of: pmt.summarise_function(*of, var_name="mu", **QUIET),
    "predictions": lambda *of: pmt.predictions(*of, data=X, var_name="mu", **QUIET),
    "comparisons": lambda *of: pmt.comparisons(*of, "site", var_name="mu", **QUIET),
    "slopes": lambda *of: pmt.slopes(*of, "age", var_name="mu", **QUIET),
    "an expression": lambda idata, model: of_scale_too(idata, model),
    "partial_dependence": lambda *of: pmt.partial_dependence(*of, "dose", var_name="mu", **QUIET),
    "accumulated_effects": lambda *of: pmt.accumulated_effects(*of, "age", var_name="mu", **QUIET),
    "get_variable_inclusion": pmt.get_variable_inclusion,
    "get_interaction_inclusion": pmt.get_interaction_inclusion,
    "permutation_importance": lambda *of: pmt.permutation_importance(
        *of, random_state=1, var_name="mu", **QUIET
    ),
    "compute_variable_importance": lambda *of: pmt.compute_variable_importance(
        *of, var_name="mu", **QUIET
    ),
    "shap_values": lambda *of: pmt.shap_values(*of, var_name="mu", **QUIET),
    "sobol_indices": lambda *of: pmt.sobol_indices(*of, var_name="mu", **QUIET),
    "interaction_strength": lambda *of: pmt.interaction_strength(*of, var_name="mu", **QUIET),
    "summarise_trees": lambda *of: pmt.summarise_trees(*of, tree=0, **QUIET),
    "tree_text": lambda *of: pmt.tree_text(*of, chain=1, draw=-1, tree=0),
    "plot_pdp": lambda *of: pmt.plot_pdp(*of, var_name="mu", backend="none", **QUIET),
    "plot_ale": lambda *of: pmt.plot_ale(*of, var_name="mu", backend="none", **QUIET),
    "plot_convergence": lambda *of: pmt.plot_convergence(
        *of, var_name="mu", backend="none", **QUIET
    ),
    "sample_posterior_predictive": by_pymc,
}


@pytest.fixture(scope="module")
def fitted(quick_compile, tmp_path_factory):
    with pm.Model() as model:
        mu = pmt.BART("mu", X, m=4, leaf=pmt.NormalLeaf(0.0, 1.0))
        scale = pm.HalfNormal("scale")
        pm.Deterministic("scaled", scale * mu)
        pm.Normal("y", mu, 0.5, observed=X.dose.to_numpy(), shape=mu.shape)
        idata = sample(DRAWS, 5)
    path = tmp_path_factory.mktemp("draws") / "fit.nc"
    return model, idata, pmt.save(idata, path)


@pytest.fixture
def reads(monkeypatch):
    """How often each variable was read from a file."""
    count = Counter()
    read = H5NetCDFArrayWrapper._getitem

    def counted(self, key):
        count[self.variable_name] += 1
        return read(self, key)

    monkeypatch.setattr(H5NetCDFArrayWrapper, "_getitem", counted)
    return count


def same(a, b):
    if isinstance(a, xr.Dataset | xr.DataArray):
        xr.testing.assert_identical(a, b)
    elif isinstance(a, str | None):
        assert a == b


@pytest.mark.parametrize("call", tiers(CALLS, ["predictions", "an expression", "tree_text"]))
def test_a_variable_is_read_once_and_kept(fitted, reads, call):
    model, idata, path = fitted
    known = CALLS[call](idata, model)
    assert not reads
    with xr.open_datatree(path, engine="h5netcdf") as stored:
        reads.clear()
        same(known, CALLS[call](stored, model))
        assert reads["mu_forest"] == 1
        assert reads["scale"] <= 1
        same(known, CALLS[call](stored, model))
        once_more = 2 if call == "sample_posterior_predictive" else 1  # PyMC keeps nothing
        assert reads["mu_forest"] == once_more
    if call not in ("sample_posterior_predictive", "check_draws"):  # a group, in pieces too
        for given in ({}, {"chunks": {}}):
            with xr.open_dataset(path, engine="h5netcdf", group="posterior", **given) as group:
                reads.clear()
                same(known, CALLS[call](group, model))
                pieces = np.prod([len(sizes) for sizes in group["mu_forest"].chunks or ()])
                # By each function that the call asks, at most three for each column; draw by draw
                # they were 2 * DRAWS times as many.
                assert 1 <= reads["mu_forest"] / pieces <= 8 < DRAWS


@pytest.mark.parametrize("width", [1, 7, 2 * DRAWS])
def test_more_than_is_held_is_read_in_blocks(fitted, reads, monkeypatch, width):
    """Twice, since the draws are checked before they are asked."""
    model, idata, path = fitted
    forests = idata["posterior"]["mu_forest"]
    monkeypatch.setattr(stored_draws, "HELD", 2 * width * forests[0, 0].nbytes)
    known = pmt.predictions(idata, model, data=X, var_name="mu", **QUIET)
    with xr.open_datatree(path, engine="h5netcdf") as stored:
        reads.clear()
        found = pmt.predictions(stored, model, data=X, var_name="mu", **QUIET)
        xr.testing.assert_identical(known, found)
        # and the first draw once more, for shapes
        assert reads["mu_forest"] <= (1 if width > DRAWS else 2 * 2 * -(-DRAWS // width) + 1)


def test_blocks_hold_every_draw(monkeypatch):
    """Whatever the order of dimensions and of places, from the end too."""
    values = np.random.default_rng(1).random((3, 2, 7, 5))
    array = xr.DataArray(values, dims=("a", "chain", "draw", "b"))
    expected = values.transpose(1, 2, 0, 3)
    for held in (1, 8 * 15 * 2 * 2, 8 * 15 * 2 * 3, 2**30):
        monkeypatch.setattr(stored_draws, "HELD", held)
        draws = StoredDraws(array)
        assert draws.shape == (2, 7, 3, 5)
        for chain, draw in [*np.ndindex(2, 7), (1, 0), (0, 6), (-1, -1), (-2, 3), (0, -7)]:
            np.testing.assert_array_equal(draws[chain, draw], expected[chain, draw])
        assert len(draws._blocks) <= 2
    assert np.shares_memory(draws[0, 0], values)
    numbers = StoredDraws(xr.DataArray(values[0, ..., 0], dims=("chain", "draw")))
    assert numbers[1, 2] == values[0, 1, 2, 0]
