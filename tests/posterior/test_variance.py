"""Sobol indices and H statistics against their definitions, with f by PyMC."""

from functools import cache
from itertools import product

import numpy as np
import pymc as pm
import pytest
from support.fitted import draws_of, on_a_frame, predicted_of, two_functions

import pymc_trees as pmt
from pymc_trees.posterior.reading.forests import ForestDraws

pytestmark = pytest.mark.usefixtures("quick_compile")
_on_a_frame, _two_functions = cache(on_a_frame), cache(two_functions)
QUIET = {"progressbar": False, "cores": 1}


def shares_by_enumeration(f, X):
    """First-order and total indices and the variance of f over all combinations of cells."""
    cells = [np.unique(X[:, j], return_counts=True) for j in range(X.shape[1])]
    rows = np.array(list(product(*(values for values, _ in cells))))
    weights = np.prod(np.array(list(product(*(n / len(X) for _, n in cells)))), axis=1)
    shape = [values.size for values, _ in cells]
    f, weights = f(rows).reshape(shape), weights.reshape(shape)
    mean = (weights * f).sum()
    variance = (weights * (f - mean) ** 2).sum()
    first, total = [], []
    for j, (_, counts) in enumerate(cells):
        others = tuple(k for k in range(len(cells)) if k != j)
        given = (weights * f).sum(axis=others) / weights.sum(axis=others)
        first.append((counts / len(X) * (given - mean) ** 2).sum() / variance)
        given = (weights * f).sum(axis=j, keepdims=True) / weights.sum(axis=j, keepdims=True)
        total.append((weights * (f - given) ** 2).sum() / variance)
    return np.array(first), np.array(total), variance


def f_of(model, idata, chain, draw):
    """f of one draw at rows, by PyMC's own evaluation."""
    one = idata.isel(chain=[chain], draw=[draw])
    return lambda X: predicted_of(model, one, "mu_forest", X)[0, 0]


def test_indices_are_those_of_the_enumeration():
    model, idata = _on_a_frame()
    X = ForestDraws(idata, model).X_train
    found = pmt.sobol_indices(idata, model, **QUIET)
    seen = 0
    for chain, draw in np.ndindex(2, 4):
        exact = shares_by_enumeration(f_of(model, idata, chain, draw), X)
        at = {"chain": chain, "draw": draw}
        for name, wanted in zip(("first_order", "total", "variance"), exact, strict=True):
            np.testing.assert_allclose(found[name].isel(at), wanted, rtol=0, atol=1e-12)
        seen += np.any(exact[1] - exact[0] > 0.01)
    assert seen > 0  # a draw with an interaction


def test_a_constant_far_away_costs_no_digits():
    """Leaves about 1e8, known to 1e-8: so are shares, and strengths by their roots."""
    X = np.random.default_rng(2).integers(0, 4, (20, 3)) / 3
    with pm.Model() as model:
        f = pmt.BART("mu", X, m=3, leaf=pmt.NormalLeaf(1e8, 3.0))
        pm.Normal("y", f, 1.0, observed=3e8 + 6 * X[:, 0] * X[:, 1])
        idata = draws_of()
    found = pmt.sobol_indices(idata, model, **QUIET)
    strengths = pmt.interaction_strength(idata, model, **QUIET)
    seen = 0
    for at in ({"chain": 0, "draw": 3}, {"chain": 1, "draw": 3}):
        far = f_of(model, idata, **at)
        exact = shares_by_enumeration(lambda X, far=far: far(X) - 3e8, X)
        for name, wanted in zip(("first_order", "total"), exact, strict=False):
            np.testing.assert_allclose(found[name].isel(at), wanted, rtol=0, atol=1e-6)
        pairwise, _, _ = strengths_by_definition(lambda X, far=far: far(X) - 3e8, X)
        np.testing.assert_allclose(strengths["pairwise"].isel(at), pairwise, rtol=0, atol=1e-6)
        seen += exact[2] > 0.1
    assert seen > 0


def test_indices_of_two_outputs_of_several_forests():
    model, idata = _two_functions()
    X = np.random.default_rng(6).integers(0, 4, (9, 2)) / 3
    with model:
        pm.Deterministic("apart", model["f"][0] - 2.0 * model["f"][1])
    for name, dims in (("f", ("chain", "draw", "kind")), ("apart", ("chain", "draw"))):
        found = pmt.sobol_indices(idata, model, X, var_name=name, **QUIET)
        assert found["variance"].dims == dims
    one = idata.isel(chain=[1], draw=[2])

    def apart(A):
        f = pmt.predictions(one, model, A, var_name="f")["prediction"]
        return (f[0, 0, 0] - 2.0 * f[0, 0, 1]).to_numpy()

    exact = shares_by_enumeration(apart, X)
    for name, wanted in zip(("first_order", "total", "variance"), exact, strict=True):
        np.testing.assert_allclose(found[name][1, 2], wanted, rtol=0, atol=1e-12)


def test_a_constant_has_no_indices():
    with pm.Model() as model:
        f = pmt.DecisionTree("f", np.arange(6.0)[:, None], leaf=pmt.NormalLeaf(0, 1), alpha=1e-9)
        pm.Normal("y", f, 1.0, observed=np.zeros(6))
        idata = draws_of()
    found = pmt.sobol_indices(idata, model, **QUIET)
    assert np.isnan(found["total"]).all() and (found["variance"] == 0).all()


def test_indices_do_not_depend_on_the_size_of_an_output_or_of_another_draw():
    with pm.Model() as model:
        s = pm.HalfNormal("s")
        f = pmt.BART("f", np.random.default_rng(1).random((12, 3)), m=3, leaf=pmt.NormalLeaf(0, 1))
        pm.Deterministic("two", pm.math.stack([1e6 * f, 1e-3 * f]))
        pm.Deterministic("times", s * f)
        draws = pm.sample_prior_predictive(4, random_seed=3)["prior"].to_dataset()
    draws["s"] = draws["s"] * 0 + np.array([1.0, 1e-8, 1e8, 2.0])
    found = pmt.sobol_indices(draws, model, var_name="f", **QUIET)
    assert (found["variance"] > 0).all()
    two = pmt.sobol_indices(draws, model, var_name="two", **QUIET).transpose("two_dim_0", ...)
    times = pmt.sobol_indices(draws, model, var_name="times", **QUIET)
    for name in ("first_order", "total"):
        for one in (*two[name], times[name]):
            np.testing.assert_allclose(one, found[name], rtol=0, atol=1e-9)


def test_rounding_has_no_indices():
    """One tree that is constant but for rounding, forests that cancel, and rows that agree."""
    X = np.random.default_rng(1).random((12, 2))
    with pm.Model() as model:
        pmt.DecisionTree("f", X, leaf=pmt.NormalLeaf(0, 1), alpha=0.99, beta=0.1)
        g, h = (pmt.BART(name, X, m=9, leaf=pmt.NormalLeaf(0, 1)) for name in "gh")
        pm.Deterministic("none", g - h)
        draws = pm.sample_prior_predictive(4, random_seed=3)["prior"].to_dataset()
    plain = {"var_name": "f", **QUIET}
    assert (pmt.sobol_indices(draws, model, **plain)["variance"] > 0).any()
    found = pmt.sobol_indices(draws, model, func=lambda f: (f + 1.0) - f, **plain)
    assert (found["variance"] > 0).any() and np.isnan(found["total"]).all()
    found = pmt.sobol_indices(draws, model, X[[3, 3, 3]], var_name="g", **QUIET)
    assert np.isnan(found["total"]).all()
    draws["h_forest"] = draws["g_forest"]
    found = pmt.sobol_indices(draws, model, var_name="none", **QUIET)
    assert (found["variance"] != 0).any() and np.isnan(found["total"]).all()


def strengths_by_definition(f, X):
    """H of pairs and single columns, by means over changed rows."""
    n, p = X.shape

    def dependence(columns):
        rows = np.repeat(X[None], n, axis=0)
        rows[:, :, columns] = X[:, None, columns]
        values = f(rows.reshape(-1, p)).reshape(n, n).mean(axis=1)
        return values - values.mean()

    single = [dependence([j]) for j in range(p)]
    pairwise, unexplained = np.full((2, p, p), np.nan)
    whole = f(X) - f(X).mean()
    overall = np.empty(p)
    for j in range(p):
        rest = whole - single[j] - dependence([k for k in range(p) if k != j])
        overall[j] = np.sqrt((rest**2).mean() / (whole**2).mean())
        for k in set(range(p)) - {j}:
            both = dependence([j, k])
            excess = ((both - single[j] - single[k]) ** 2).mean()
            unexplained[j, k] = np.sqrt(excess)
            spread = (both**2).mean()
            pairwise[j, k] = np.sqrt(excess / spread) if spread > 1e-20 else np.nan
    return pairwise, unexplained, overall


def test_strengths_are_those_of_the_definition():
    model, idata = _on_a_frame()
    X = ForestDraws(idata, model).X_train
    found = pmt.interaction_strength(idata, model, **QUIET)
    for chain, draw in [(0, 0), (1, 3), (1, 1)]:
        exact = strengths_by_definition(f_of(model, idata, chain, draw), X)
        at = {"chain": chain, "draw": draw}
        for name, wanted in zip(("pairwise", "unexplained", "overall"), exact, strict=True):
            np.testing.assert_allclose(found[name].isel(at), wanted, rtol=0, atol=1e-8)
    assert (found["unexplained"].max("draw") > 0.01).any()
    some = pmt.interaction_strength(idata, model, ["dose", "age"], **QUIET)
    wanted = found.sel(feature=["dose", "age"], other=["dose", "age"])
    np.testing.assert_allclose(some["pairwise"], wanted["pairwise"], atol=1e-12)


def test_too_many_pairs_are_refused():
    model, idata = _on_a_frame()
    X = np.zeros((10**7, 3))
    with pytest.raises(ValueError, match=r"3 columns at 10000000 rows take.*GB.*subsample"):
        pmt.interaction_strength(idata, model, X=X, **QUIET)
