"""Shapley values of curved functions and of the whole model, against sums over all subsets."""

from functools import cache

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from scipy.special import expit
from support.fitted import frame, on_a_frame, predicted_of
from support.subsets import interventional, shapley_of

import pymc_trees as pmt
from pymc_trees.posterior.explain import coalitions
from pymc_trees.posterior.explain.coalitions import (
    ColumnsThatMatter,
    all_sets_are_cheaper,
    of_all_sets,
    of_random_orders,
)
from pymc_trees.posterior.reading.whole import WholeFunction

pytestmark = pytest.mark.usefixtures("quick_compile")
_on_a_frame = cache(on_a_frame)
QUIET = {"progressbar": False}
N, P = 12, 4
RNG = np.random.default_rng(5)
X = RNG.random((N, P))
EXPOSURE, Z, G = RNG.random(N) + 0.5, np.resize([0.0, 1.0, 1.0], N), RNG.integers(0, 3, N)
LEAF = pmt.NormalLeaf(0.0, 0.7)


@cache
def whole():
    """A model of functions of a forest and of other data, and draws of its prior."""
    with pm.Model(coords={"school": ["north", "south", "west"]}) as model:
        data, exposure = pm.Data("X", X), pm.Data("exposure", EXPOSURE)
        z, g, price = pm.Data("z", Z), pm.Data("g", G), pm.Data("price", 2.0)
        f = pmt.BART("f", data, m=4, leaf=LEAF)
        b, tau = pm.Normal("b"), pm.HalfNormal("tau")
        a = pm.Normal("a", 0, tau, dims="school")
        pm.Deterministic("rate", exposure * pm.math.exp(f))
        pm.Deterministic("p", pm.math.invlogit(f + b * z + a[g]))
        pm.Deterministic("bill", price * exposure * f**2)
        pm.Deterministic("own", pm.math.exp(f + np.arange(N)))
        pm.Deterministic("centred", pm.math.exp(f) - pm.math.exp(f).mean())
        pm.Deterministic("root", pm.math.sqrt(f))
        few = pmt.BART("few", data, m=3, leaf=LEAF, split_prior=[1, 1, 0, 0])
        pm.Deterministic("beside", pm.math.exp(few) * data[:, 3])
        line = pmt.BART("line", data, m=2, leaf=pmt.LinearLeaf(0.0, 1.0, columns="all"))
        pm.Deterministic("exp_line", pm.math.exp(line))
        soft = pmt.SoftBART("soft", data, m=2, leaf=LEAF)
        pm.Deterministic("exp_soft", pm.math.exp(soft))
        cuts = pm.Normal(
            "cuts",
            [-0.5, 0.5],
            0.1,
            transform=pm.distributions.transforms.ordered,
            initval=[-0.5, 0.5],
        )
        pm.OrderedLogistic("o", eta=f + b * z, cutpoints=cuts, observed=np.zeros(N, dtype=int))
        prior = pm.sample_prior_predictive(5, random_seed=3)
    groups = {"posterior": prior["prior"].to_dataset(), "constant_data": prior["constant_data"]}
    return model, xr.DataTree.from_dict(groups)


def drawn(name, draw):
    _, idata = whole()
    return idata["posterior"][name].to_numpy()[0, draw]


def f_of(draw, name="f_forest"):
    """Function of rows, by PyMC's own evaluation."""
    model, idata = whole()
    return lambda rows: predicted_of(model, idata.isel(draw=[draw]), name, rows)[0, 0]


def by_definition(g, rows, background):
    """(n, p) values, (n,) base, of a function of table rows, over all subsets."""
    found, base = [], []
    for x in rows:
        game = interventional(lambda A: np.atleast_2d(g(A)), x, background)
        values, _ = shapley_of(game, len(x))
        found.append(values)
        base.append(game[..., 0])
    return np.array(found), np.array(base)


def agrees(found, draw, wanted, base):
    """Values (n, outputs, p) and base (n, outputs) of one draw."""
    one = found.isel(chain=0, draw=draw).transpose(..., "row", "feature")
    values = np.moveaxis(wanted, 0, -2)
    np.testing.assert_allclose(one["values"].to_numpy().reshape(values.shape), values, atol=1e-12)
    np.testing.assert_allclose(np.ravel(one["base_values"]), base[0], atol=1e-12)
    assert (one["standard_error"] == 0).all()


# ------------------------------------------------------------------------- Against the definition


def test_probabilities_on_levels_and_missing_cells():
    model, idata = _on_a_frame()
    rows = WholeFunction(idata, model).rows(None)
    given = {"background": frame(), "func": expit, **QUIET}
    found = pmt.shap_values(idata, model, **given)
    assert found.attrs["algorithm"] == "interventional"
    for draw in (0, 3):
        one = idata.isel(chain=[1], draw=[draw])

        def g(A, one=one):
            return expit(predicted_of(model, one, "mu_forest", A)[0, 0])

        wanted, base = by_definition(g, rows[[0, 3, 7]], rows)
        assert np.abs(wanted).max() > 1e-3
        agrees(found.isel(chain=[1], row=[0, 3, 7]), draw, wanted, base)


def test_the_identity_has_the_values_of_the_closed_form():
    """Which are interventional ones (TreeSHAP against a background), and so are these."""
    model, idata = _on_a_frame()
    closed = pmt.shap_values(idata, model, background=frame(), **QUIET)
    found = pmt.shap_values(idata, model, background=frame(), func=lambda f: f + 0.0, **QUIET)
    for name in ("values", "base_values", "data"):
        np.testing.assert_allclose(found[name], closed[name], atol=1e-12)
    assert closed.attrs == found.attrs
    assert "standard_error" not in closed and (found["standard_error"] == 0).all()


def test_a_rate_with_an_exposure():
    model, idata = whole()
    table = np.column_stack([X, EXPOSURE])
    data = {"X": X[:5], "exposure": EXPOSURE[:5]}
    found = pmt.shap_values(idata, model, var_name="rate", background=data, **QUIET)
    assert list(found["feature"].to_numpy()) == ["x0", "x1", "x2", "x3", "exposure"]
    for draw in (0, 2):
        f = f_of(draw)
        wanted, base = by_definition(lambda A, f=f: A[:, 4] * np.exp(f(A[:, :4])), table, table[:5])
        agrees(found, draw, wanted, base)
    np.testing.assert_array_equal(found["data"], table)


def test_an_exposure_held_at_one_number_gets_nothing():
    model, idata = whole()
    one = {"X": X[:3], "exposure": 2.0}
    options = {"var_name": "rate", "background": {"X": X, "exposure": 2.0}, **QUIET}
    found = pmt.shap_values(idata, model, one, **options)
    wanted = pmt.shap_values(idata, model, X[:3], func=np.exp, var_name="f", background=X, **QUIET)
    assert (found["values"].sel(feature="exposure") == 0).all()
    np.testing.assert_allclose(found["values"][..., :4], 2 * wanted["values"], atol=1e-12)


def test_groups_treatments_and_other_numbers():
    model, idata = whole()
    table = np.column_stack([X, Z, G])
    found = pmt.shap_values(idata, model, var_name="p", background=6, random_state=4, **QUIET)
    chosen = np.sort(np.random.default_rng(4).choice(N, 6, replace=False))
    order = [list(found["feature"].to_numpy()).index(k) for k in ("x0", "x1", "x2", "x3", "z", "g")]
    f, a, b = f_of(3), drawn("a", 3), float(drawn("b", 3))

    def p(A):
        return expit(f(A[:, :4]) + b * A[:, 4] + a[A[:, 5].astype(int)])

    wanted, base = by_definition(p, table[:4], table[chosen])
    agrees(found.isel(row=slice(4), feature=order), 3, wanted, base)
    # a number that is the same for all rows
    given = {"background": {"X": X, "exposure": EXPOSURE}, **QUIET}
    tripled = {"X": X, "exposure": EXPOSURE, "price": 6.0}
    once = pmt.shap_values(idata, model, var_name="bill", **given)
    thrice = pmt.shap_values(idata, model, tripled, var_name="bill", **given)
    np.testing.assert_allclose(thrice["values"], 3 * once["values"], atol=1e-12)
    assert abs(once["values"]).max() > 0.01


def test_probabilities_of_ordered_answers():
    model, idata = whole()
    table = np.column_stack([X, Z])
    data = {"X": X[:5], "z": Z[:5]}
    found = pmt.shap_values(idata, model, var_name="o_probs", background=data, **QUIET)
    np.testing.assert_allclose(found["values"].sum("o_probs_dim_1"), 0.0, atol=1e-12)
    f, b, cuts = f_of(1), float(drawn("b", 1)), drawn("cuts", 1)

    def probabilities(A):
        below = expit(cuts[:, None] - f(A[:, :4]) - b * A[:, 4])
        return np.diff(np.concatenate([np.zeros((1, len(A))), below, np.ones((1, len(A)))]), axis=0)

    wanted, base = by_definition(probabilities, table, table[:5])
    agrees(found, 1, wanted, base)


def test_columns_that_only_the_function_reads():
    """X[:, 3] is beside trees that split on two columns; lines and soft gates read more."""
    model, idata = whole()
    function = WholeFunction(idata, model, "beside")
    matter = ColumnsThatMatter(function)
    few = ColumnsThatMatter(WholeFunction(idata, model, "rate"))
    split = pmt.get_variable_inclusion(idata, model, forest="f")["count"].to_numpy()[0] > 0
    for draw in range(5):
        assert few.at(0, draw) == set(np.flatnonzero(split[draw])) | {4}
        assert matter.at(0, draw) >= {3}
        assert matter.at(0, draw) <= {0, 1, 3}
    assert ColumnsThatMatter(WholeFunction(idata, model, "exp_line")).at(0, 0) == set(range(P))
    found = pmt.shap_values(idata, model, var_name="beside", background=X[:4], **QUIET)
    few_of = f_of(2, "few_forest")
    wanted, base = by_definition(lambda A: np.exp(few_of(A)) * A[:, 3], X, X[:4])
    agrees(found, 2, wanted, base)


@pytest.mark.parametrize("name", ["line", "soft"])
def test_lines_in_leaves_and_soft_trees(name):
    model, idata = whole()
    found = pmt.shap_values(idata, model, X[:3], var_name=f"exp_{name}", background=X[:4], **QUIET)

    def g(rows):
        found = pmt.predictions(idata, model, rows, var_name=f"exp_{name}", **QUIET)["prediction"]
        return found.to_numpy()[0, 1]

    wanted, base = by_definition(g, X[:3], X[:4])
    assert np.abs(wanted).max() > 1e-3
    agrees(found, 1, wanted, base)


# ---------------------------------------------------------------------------- Kernels by themselves


def product(rows):
    """Two outputs of six columns with interactions of every order."""
    return np.stack([np.prod(1 + rows, axis=1), np.exp(rows.sum(axis=1)) / (1 + rows[:, 0])])


def problem(k=6):
    rng = np.random.default_rng(2)
    return rng.random((3, k + 1)), rng.random((5, k + 1)), list(range(k))


def test_all_sets_in_pieces(monkeypatch):
    x, background, columns = problem()
    at = lambda A: product(A[:, :6])  # noqa: E731
    values = of_all_sets(at, x, background, columns)
    wanted, _ = by_definition(lambda A: product(A), x[:, :6], background[:, :6])
    np.testing.assert_allclose(values[:, :6], np.swapaxes(wanted, 1, 2), atol=1e-12)
    assert (values[:, 6] == 0).all()
    for cells in (1, 700, 7 * 5 * 65):
        monkeypatch.setattr(coalitions, "CELLS", cells)
        np.testing.assert_allclose(of_all_sets(at, x, background, columns), values, atol=1e-13)
    assert (of_all_sets(at, x, background, []) == 0).all()


def test_random_orders_are_unbiased_and_know_their_error(monkeypatch):
    """2,000 estimates: z of their mean, and their variance against the stated one.

    36 numbers, so |z| < 4.5. A ratio of variances has a standard error of some 4%; 20% are allowed,
    and 5% for the mean of them all.
    """
    x, background, columns = problem()
    at = lambda A: product(A[:, :6])  # noqa: E731
    exact = of_all_sets(at, x, background, columns)[:, :6]
    rng, repeats = np.random.default_rng(1), 2000
    each = [of_random_orders(rng, at, x, background, columns, 2) for _ in range(repeats)]
    values, errors = (np.array([one[k][:, :6] for one in each]) for k in range(2))
    z = (values.mean(axis=0) - exact) / (values.std(axis=0) / np.sqrt(repeats))
    assert np.abs(z).max() < 4.5
    ratio = (errors**2).mean(axis=0) / values.var(axis=0)
    assert np.abs(ratio - 1).max() < 0.2 and abs(ratio.mean() - 1) < 0.05
    total = (at(x) - at(background).mean(axis=1, keepdims=True)).T
    np.testing.assert_allclose(values.sum(axis=2), np.broadcast_to(total, (repeats, 3, 2)))
    monkeypatch.setattr(coalitions, "CELLS", 1)  # one row of the background at a time
    alone = of_random_orders(np.random.default_rng(1), at, x, background, columns, 2)
    first = of_random_orders(np.random.default_rng(1), at, x, background, columns, 2)
    np.testing.assert_array_equal(alone, first)
    np.testing.assert_allclose(alone[0].sum(axis=1), total)


def test_an_order_and_its_reverse_are_exact_for_pairs():
    x, background, columns = problem()
    at = lambda A: np.stack([A[:, 0] * A[:, 1] - A[:, 2] * A[:, 5], A.sum(axis=1) ** 2])  # noqa: E731
    x, background = x[:, :6], background[:, :6]
    exact = of_all_sets(at, x, background, columns)
    found, errors = of_random_orders(np.random.default_rng(1), at, x, background, columns, 2)
    np.testing.assert_allclose(found, exact, atol=1e-13)
    np.testing.assert_allclose(errors, 0.0, atol=1e-13)


@pytest.mark.parametrize(("k", "pairs", "cheaper"), [(1, 2, True), (7, 10, True), (8, 10, False)])
def test_when_all_sets_are_evaluated(k, pairs, cheaper):
    assert all_sets_are_cheaper(k, pairs) == cheaper


# ------------------------------------------------------------------------------- Estimates in use


@cache
def many():
    """One forest over 10 columns, whose trees split on most of them; and draws of its prior."""
    rows = np.random.default_rng(9).random((30, 10))
    with pm.Model() as model:
        pmt.BART("f", rows, m=20, leaf=pmt.NormalLeaf(0.0, 0.5), alpha=0.99, beta=0.5)
        prior = pm.sample_prior_predictive(6, random_seed=2)
    return model, xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()}), rows


def test_estimates_of_many_columns():
    """Against all 2^10 sets; squared errors and squared standard errors agree on average.

    720 numbers, correlated within rows: some 60 independent ones, of heavier tails than normal.
    """
    model, idata, rows = many()
    given = {"func": np.exp, "background": rows[:6], "random_state": 3, **QUIET}
    exact = pmt.shap_values(idata, model, rows[6:18], permutations=52, **given)
    found = pmt.shap_values(idata, model, rows[6:18], permutations=3, **given)
    assert (exact["standard_error"] == 0).all() and (found["standard_error"] > 0).mean() > 0.9
    error = found["values"] - exact["values"]
    ratio = float((error**2).mean() / (found["standard_error"] ** 2).mean())
    assert 0.6 < ratio < 1.6, ratio
    f = pmt.predictions(idata, model, rows[6:18], func=np.exp, **QUIET)["prediction"]
    for one in (exact, found):
        total = one["values"].sum("feature") + one["base_values"]
        np.testing.assert_allclose(total.transpose(*f.dims), f, rtol=1e-12)
    same = pmt.shap_values(idata, model, rows[6:18], permutations=3, **given)
    xr.testing.assert_identical(same, found)
    other = pmt.shap_values(idata, model, rows[6:18], permutations=3, **given | {"random_state": 4})
    assert (other["values"] != found["values"]).any()


def test_the_default_estimates_where_columns_are_many():
    model, idata, rows = many()
    given = {"func": np.exp, "background": rows[:3], "draws": 2, "random_state": 3, **QUIET}
    found = pmt.shap_values(idata, model, rows[:2], **given)
    assert found.sizes["draw"] == 2 and (found["standard_error"] > 0).any()


# ------------------------------------------------------------------------ Pictures, and refusals


def test_pictures_and_the_package_shap():
    model, idata = whole()
    found = pmt.shap_values(idata, model, var_name="rate", background=5, random_state=1, **QUIET)
    drawn = pmt.plot_shap(found, backend="none").viz["rows"]["shap"].to_numpy()
    dots = np.concatenate([np.ravel(one["x"]) for one in drawn])
    means = found["values"].mean(("chain", "draw")).to_numpy()
    np.testing.assert_allclose(np.sort(dots[~np.isnan(dots)]), np.sort(means, axis=None))
    mean = pmt.to_shap(found)
    wanted = idata["posterior"]["rate"].mean(("chain", "draw"))
    np.testing.assert_allclose(mean.values.sum(1) + mean.base_values, wanted, atol=1e-12)


def test_what_is_refused_and_what_the_errors_propose():
    model, idata = whole()

    def ask(*args, function=pmt.shap_values, **given):
        return function(idata, model, *args, **given, **QUIET)

    with pytest.raises(ValueError, match=r"rate is not a sum of trees.*background=100"):
        ask(var_name="rate")
    with pytest.raises(ValueError, match=r"func\(f\) is not a sum of trees.*var_name"):
        ask(var_name="f", func=np.exp)
    assert ask(var_name="rate", background=100)["values"].sizes["feature"] == 5
    with pytest.raises(ValueError, match=r"own takes a number for each row.*pm.Data"):
        ask(var_name="own", background=3)
    with pytest.raises(ValueError, match="centred depends on other rows"):
        ask(var_name="centred", background=3)
    assert ask(var_name="f", background=3)["values"].sizes["feature"] == 4
    with pytest.raises(ValueError, match=r"background: \['price'\] are no data.*in X="):
        ask(var_name="bill", background={"X": X, "exposure": 1.0, "price": 3.0})
    with pytest.raises(ValueError, match=r"root is not finite where columns .*give a background"):
        with np.errstate(invalid="ignore"):
            ask(var_name="root", background=X)
    with pytest.raises(ValueError, match=r"permutations=1: must be a whole number of at least 2"):
        ask(var_name="rate", background=5, permutations=1)
    with pytest.raises(ValueError, match="root is not a sum of trees"):
        ask(function=pmt.shap_interactions, var_name="root", background=5)
    two = {"X": X, "cost": 1.0}
    with pytest.raises(ValueError, match=r"is more than the X of f: give its columns alone"):
        ask(two, function=pmt.shap_interactions, var_name="f")
    assert ask({"X": X}, function=pmt.shap_interactions, var_name="f").sizes["row"] == N
    alone = ask(X, var_name="f")
    for given in ({"X": X}, {"X": X, "exposure": 1.0}, {"exposure": 1.0}):
        xr.testing.assert_identical(alone, ask(given, var_name="f"))
    two = {"X": X, "price": 3.0}
    pairs = [ask(one, function=pmt.shap_interactions, var_name="f") for one in (X, two)]
    xr.testing.assert_identical(*pairs)


def test_functions_of_forests_at_different_frames():
    left = pd.DataFrame(X[:, :2], columns=["a", "b"])
    right = pd.DataFrame(X[:, [0, 2]], columns=["a", "z"])
    with pm.Model() as model:
        total = pmt.BART("f", left, m=3, leaf=LEAF) + pmt.BART("g", right, m=3, leaf=LEAF)
        pm.Deterministic("total", total)
        pm.Deterministic("exp_total", pm.math.exp(total))
        prior = pm.sample_prior_predictive(3, random_seed=3)
    idata = xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})
    rows = X[:, :3]  # a, b, z
    for name, of in (("total", lambda f: f), ("exp_total", np.exp)):
        found = pmt.shap_values(idata, model, var_name=name, background=99, **QUIET)
        assert set(found["feature"].to_numpy()) == {"a", "b", "z"}
        found = found.sel(feature=["a", "b", "z"])
        for draw in range(3):
            one = idata.isel(draw=[draw])

            def g(A, one=one, of=of):
                f = predicted_of(model, one, "f_forest", A[:, :2])
                return of(f + predicted_of(model, one, "g_forest", A[:, [0, 2]]))[0, 0]

            agrees(found.isel(row=[0, 4]), draw, *by_definition(g, rows[[0, 4]], rows))
        with pytest.raises(ValueError, match="is not a sum of trees of one X.* background=100"):
            pmt.shap_values(idata, model, var_name=name, **QUIET)
