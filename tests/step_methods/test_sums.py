"""A forest beside other terms: convergence is judged on the sum, and the parts are named."""

import numpy as np
import pymc as pm
import pymc.sampling.mcmc as mcmc
import pytest
import xarray as xr
from pymc.stats.convergence import WarningType

import pymc_trees as pmt
from pymc_trees.core.value.fields import CHECKSUM, LEAF, compute_checksum
from pymc_trees.distributions.tree_variable import tree_variable
from pymc_trees.distributions.without_dims import without_dims
from pymc_trees.hooks.sums import sums_of, values_of

pytestmark = pytest.mark.usefixtures("quick_compile")

N, CHAINS, DRAWS = 24, 4, 300
RNG = np.random.default_rng(2)
X, GROUP = RNG.random((N, 2)), np.arange(N) % 3
COUNTS = np.arange(N) % 4


def declare(likelihood="normal"):
    with pm.Model(coords={"school": list("abc")}) as model:
        rows, g = pmt.Data("X", X), pm.Data("g", GROUP)
        a = pm.Normal("a", 0.0, 1.0, dims="school")
        f = pmt.BART("f", rows, m=4, leaf=pmt.NormalLeaf(0.0, 0.3))
        LIKELIHOODS[likelihood](f, a[g], rows)
    return model


def _two(f, a, rows):
    b = pm.Normal("b")
    h = pmt.BART("h", rows, m=2, leaf=pmt.NormalLeaf(0.0, 0.3))
    pm.Normal("y", f + a, pm.math.exp(h + b), observed=X[:, 0], shape=f.shape)


def _effects(f, a, rows):
    h = pmt.BART("h", rows, m=2, leaf=pmt.NormalLeaf(0.0, 0.3))
    pm.Normal("y", f + h * X[:, 1] + a, 1.0, observed=X[:, 0], shape=f.shape)


def _ordered(f, a, rows):
    cuts = pm.Normal("cuts", [-1, 0, 1], transform=pm.distributions.transforms.ordered)
    pm.OrderedLogistic("y", eta=f + a, cutpoints=cuts, observed=COUNTS)


LIKELIHOODS = {
    "normal": lambda f, a, rows: pm.Normal(
        "y", f + a, pm.HalfNormal("sigma"), observed=X[:, 0], shape=f.shape
    ),
    "scaled": lambda f, a, rows: pm.Normal(
        "y", 2.0 * f + pm.HalfNormal("s") * a, 1.0, observed=X[:, 0], shape=f.shape
    ),
    "logit": lambda f, a, rows: pm.Bernoulli("y", logit_p=f + a, observed=COUNTS > 1),
    "poisson": lambda f, a, rows: pm.Poisson("y", pm.math.exp(f + a), observed=COUNTS),
    "negative binomial": lambda f, a, rows: pm.NegativeBinomial(
        "y", mu=pm.math.exp(f + a), alpha=pm.HalfNormal("alpha"), observed=COUNTS
    ),
    "ordered": _ordered,
    "two sums": _two,
    "two forests": _effects,
    "nothing beside it": lambda f, a, rows: (
        pm.Normal("y", f, 1.0, observed=X[:, 0], shape=f.shape),
        pm.Normal("other", a, 1.0, observed=X[:, 0]),
    ),
    "not a sum": lambda f, a, rows: pm.Normal("y", f * a, 1.0, observed=X[:, 0], shape=f.shape),
}
EXPECTED = {
    "normal": ["f + a"],
    "scaled": ["f + a + s"],
    "logit": ["f + a"],
    "poisson": ["f + a"],
    "negative binomial": ["f + a"],
    "ordered": ["f + a + cuts"],
    "two sums": ["f + a", "h + b"],
    "two forests": ["f + h + a"],
    "nothing beside it": [],
    "not a sum": [],
}


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_sums_are_read_from_the_graph(likelihood):
    model = declare(likelihood)
    found = [set(one.words.split(" + ")) for one in sums_of(without_dims(model))]
    expected = [set(words.split(" + ")) for words in EXPECTED[likelihood]]
    assert sorted(map(sorted, found)) == sorted(map(sorted, expected))


def shifted(model, values, by):
    """(chain, draw, ...) encoded forests with a number for each draw added to f."""
    rv = tree_variable(model["f_forest"])
    layout, values = rv.op.layout, values.copy()
    for at in np.ndindex(*values.shape[:2]):
        one = values[at]
        nodes = one[: layout.max_nodes]
        nodes[nodes[:, 0] == LEAF, 1] += by[at] / layout.m
        one[layout.max_nodes, CHECKSUM] = compute_checksum(one, layout.max_nodes, rv.fingerprint)
        assert rv.is_intact(one)
    return values


@pytest.fixture(scope="module")
def independent(quick_compile):
    """Independent draws of the prior, which mix as well as can be."""
    model = declare()
    names = ["a", "sigma", "f_forest", "f"]
    with model:
        prior = pm.sample_prior_predictive(CHAINS * DRAWS, random_seed=1, var_names=names)
    arrays = {name: prior.prior[name].to_numpy()[0] for name in names}
    return model, {k: v.reshape(CHAINS, DRAWS, *v.shape[1:]) for k, v in arrays.items()}


def as_idata(model, arrays, drift_f, drift_a, record=True):
    """Draws in which f and a drift, of each draw."""
    arrays = dict(arrays)
    arrays["f_forest"] = shifted(model, arrays["f_forest"], drift_f)
    arrays["f"] = arrays["f"] + drift_f[..., None]
    arrays["a"] = arrays["a"] + drift_a[..., None]
    if not record:
        del arrays["f"]
    variables = {
        name: (("chain", "draw", *(f"{name}_{k}" for k in range(v.ndim - 2))), v)
        for name, v in arrays.items()
    }
    return xr.DataTree.from_dict({"posterior": xr.Dataset(variables)})


def alarms(idata, model):
    found = mcmc.run_convergence_checks(idata, model)
    return [w.message for w in found if w.kind is WarningType.CONVERGENCE]


WALK = np.cumsum(np.random.default_rng(3).normal(size=(CHAINS, DRAWS)), axis=1)
"""Far wider than f and a by themselves."""


@pytest.mark.parametrize("record", [True, False])
def test_parts_that_drift_apart_are_named_and_the_sum_is_judged(independent, record):
    model, arrays = independent
    found = alarms(as_idata(model, arrays, WALK, -WALK, record), model)
    assert len(found) == 1
    assert found[0].startswith("f + a has converged (R-hat up to 1.0")
    assert "but f and a by themselves have not" in found[0]
    assert "GaussianTerms" in found[0]


def test_a_sum_that_drifts_is_reported_by_pymc(independent):
    model, arrays = independent
    for drift_f, drift_a in ((WALK, 0 * WALK), (0 * WALK, WALK), (WALK, WALK)):
        found = alarms(as_idata(model, arrays, drift_f, drift_a), model)
        assert any("rhat" in message for message in found)
        assert not any("by themselves" in message for message in found)


def test_parts_that_agree_cause_no_message(independent):
    model, arrays = independent
    assert alarms(as_idata(model, arrays, 0 * WALK, 0 * WALK), model) == []


def test_other_variables_are_judged_as_before(independent):
    """The message about f and a does not hide a sigma that drifts."""
    model, arrays = independent
    wrong = arrays | {"sigma": np.exp(WALK / 10)}
    found = alarms(as_idata(model, wrong, WALK, -WALK), model)
    assert any("by themselves" in message for message in found)
    assert any("rhat" in message for message in found)


def test_values_of_a_sum(independent):
    model, arrays = independent
    idata = as_idata(model, arrays, WALK, -WALK)
    [one] = sums_of(without_dims(model))
    for posterior in (idata.posterior.to_dataset(), idata.posterior.to_dataset().drop_vars("f")):
        values = values_of(one, without_dims(model), posterior, {}, N)
        expected = idata.posterior["f"].values + idata.posterior["a"].values[..., GROUP]
        np.testing.assert_allclose(values, expected, atol=1e-9)
    few = values_of(one, without_dims(model), idata.posterior.to_dataset(), {}, 5)
    np.testing.assert_allclose(few, values[..., [0, 5, 11, 17, 23]], atol=1e-9)
