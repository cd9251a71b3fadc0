"""Questions about any Deterministic of a model, against PyMC's own predictions of changed data."""

from functools import cache

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")
QUIET = {"progressbar": False}
N, SCHOOLS, TIMES = 14, ["north", "south", "west"], np.array([0.5, 1.0, 2.0])
RNG = np.random.default_rng(7)
LEAF = pmt.NormalLeaf(0.0, 0.4)


def frame(n=N, seed=1):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {"age": rng.random(n), "site": rng.choice(list("ab"), n), "k": rng.random(n)}
    )


def data_of(n=N, seed=2):
    """Data beside X, with an entry for each row."""
    rng = np.random.default_rng(seed)
    return {
        "exposure": rng.random(n) + 0.5,
        "z": np.resize([0.0, 1.0], n),
        "g": rng.integers(0, 3, n),
        "W": rng.normal(size=(n, 2)),
        "arm": np.resize([0, 1, 1], n),
    }


@cache
def asked():
    """A model of many Deterministics of forests and of other variables, and draws of its prior."""
    coords = {"school": SCHOOLS, "time": TIMES, "term": ["one", "two"]}
    with pm.Model(coords=coords) as model:
        X = pmt.Data("X", frame())
        only = pmt.Data("only", frame()[["age"]])
        known = data_of()
        exposure, z = pm.Data("exposure", known["exposure"]), pm.Data("z", known["z"])
        g, W = pm.Data("g", known["g"]), pm.Data("W", known["W"], dims=("row_of_W", "term"))
        price = pm.Data("price", 2.0)
        f = pmt.BART("f", X, m=5, leaf=LEAF)
        h = pmt.BART("h", only, m=5, leaf=LEAF)
        b, sigma = pm.Normal("b"), pm.HalfNormal("sigma")
        beta = pm.Normal("beta", dims="term")
        tau = pm.HalfNormal("tau")
        a = pm.Normal("a", 0, tau, dims="school")
        eps, alpha = pm.Normal("eps", shape=N), pm.HalfNormal("alpha")
        cuts = pm.Normal(
            "cuts",
            [-1.0, 1.0],
            0.1,
            transform=pm.distributions.transforms.ordered,
            initval=[-1.0, 1.0],
        )
        pm.Deterministic("p", pm.math.invlogit(f + b * z + a[g]))
        pm.Deterministic("rate", exposure * pm.math.exp(f))
        pm.Deterministic("mean", pm.math.exp(f + sigma**2 / 2))
        pm.Deterministic(
            "zero", pm.math.exp(pm.logp(pm.NegativeBinomial.dist(pm.math.exp(f), alpha=alpha), 0))
        )
        pm.Deterministic("hurdle", pm.math.invlogit(f) * pm.math.exp(h + sigma**2 / 2))
        survival = pm.math.exp(-pm.math.exp(f + b * z)[:, None] * TIMES[None, :])
        pm.Deterministic("survival", survival, dims=(None, "time"))
        pm.Deterministic("linear", f + W @ beta)
        pm.Deterministic("bill", price * f)
        pm.Deterministic("own", f + eps + np.arange(N))
        pm.Deterministic("centred", f + b * (z - z.mean()))
        effects = pm.Normal("effects", shape=2)
        arm = pm.Data("arm", known["arm"])
        pm.Deterministic("of_arms", effects[arm] * f + arm)
        three = pt.stack([f, exposure, a[g]], axis=1)
        pm.Deterministic("sorted", pt.sort(three, axis=1))
        pm.Deterministic("ranked", pt.sort(f + exposure + a[g]))
        pm.Deterministic("total", f.sum() + b)
        pm.OrderedLogistic("o", eta=f + b * z, cutpoints=cuts, observed=np.zeros(N, dtype=int))
        prior = pm.sample_prior_predictive(6, random_seed=3)
    groups = {"posterior": prior["prior"].to_dataset(), "constant_data": prior["constant_data"]}
    return model, xr.DataTree.from_dict(groups)


def by_pymc(name, **data):
    """(chain, draw, ...) a Deterministic after `pymc_trees.set_data`, by PyMC."""
    model, idata = asked()
    before = {key: model[key].get_value() for key in data}
    with model, np.errstate(invalid="ignore"):  # PyMC compares data by their ratio
        pmt.set_data(data)
        try:
            found = pm.sample_posterior_predictive(idata, var_names=[name], **QUIET)
        finally:
            pmt.set_data(before)
    return found.posterior_predictive[name].to_numpy()


NAMES = [
    "p",
    "rate",
    "mean",
    "zero",
    "hurdle",
    "survival",
    "linear",
    "bill",
    "o_probs",
    "of_arms",
    "sorted",
]


@pytest.mark.parametrize("name", NAMES)
def test_all_at_other_rows_and_data(name):
    model, idata = asked()
    new, data = frame(5, 8), data_of(5, 9)
    everything = {"X": new, "only": new[["age"]], **data, "price": 3.5}
    wanted = by_pymc(name, **everything)
    found = pmt.predictions(idata, model, everything, var_name=name, **QUIET)["prediction"]
    if name in ("survival", "o_probs", "sorted"):
        wanted = np.swapaxes(wanted, -1, -2)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert found.sizes["row"] == 5 and found.var() > 0


def test_own_rows_are_those_of_the_draws():
    model, idata = asked()
    for name in ("p", "rate", "own", "hurdle"):
        found = pmt.predictions(idata, model, var_name=name, **QUIET)["prediction"]
        np.testing.assert_allclose(found, idata["posterior"][name], rtol=1e-12)


def test_a_treatment_that_is_a_coefficient():
    model, idata = asked()
    low, high = (by_pymc("p", z=np.full(N, z)) for z in (0.0, 1.0))
    found = pmt.comparisons(idata, model, {"z": (0, 1)}, var_name="p", **QUIET)["z"]
    np.testing.assert_allclose(found[..., 0, :], high - low, rtol=1e-10, atol=1e-15)
    usual = pmt.comparisons(idata, model, "z", var_name="p", by="site", **QUIET)
    assert usual["z_contrast"].item() == "1 - 0"  # as a column of 0 and 1
    at_a = (frame().site == "a").to_numpy()
    np.testing.assert_allclose(usual["z"].sel(site="a")[..., 0], (high - low)[..., at_a].mean(-1))
    by_z = pmt.predictions(idata, model, var_name="p", by="z", **QUIET)["prediction"]
    treated = idata["posterior"]["p"].to_numpy()[..., data_of()["z"] == 1].mean(-1)
    np.testing.assert_allclose(by_z.sel(z=1.0), treated)


def test_slopes_and_curves_of_data():
    model, idata = asked()
    E = data_of()["exposure"]
    ends = [by_pymc("rate", exposure=E + side * 0.1) for side in (-1, 1)]
    found = pmt.slopes(idata, model, "exposure", step=0.2, var_name="rate", **QUIET)["exposure"]
    np.testing.assert_allclose(found, (ends[1] - ends[0]) / 0.2, rtol=1e-9)
    asked_for = {"var_name": "rate", "grid": [0.5, 1.5], "kind": "individual", **QUIET}
    curve = pmt.partial_dependence(idata, model, "exposure", **asked_for)["individual"]
    for k, value in enumerate((0.5, 1.5)):
        wanted = by_pymc("rate", exposure=np.full(N, value))
        np.testing.assert_allclose(curve[..., k], wanted, rtol=1e-12)
    pair = pmt.partial_dependence(idata, model, ("site", "z"), var_name="p", **QUIET)["average"]
    wanted = by_pymc("p", X=frame().assign(site="b"), z=np.ones(N)).mean(-1)
    np.testing.assert_allclose(pair.sel(site="b", z=1.0), wanted, rtol=1e-12)
    # a straight line in the exposure, of slope exp(f)
    ale = pmt.accumulated_effects(idata, model, "exposure", var_name="rate", intervals=1, **QUIET)
    rise = ale["effect"][..., -1] - ale["effect"][..., 0]
    mean = (idata["posterior"]["rate"].to_numpy() / E).mean(-1)
    np.testing.assert_allclose(rise, mean * (E.max() - E.min()), rtol=1e-10)


def test_columns_of_matrices_and_labels_of_groups():
    model, idata = asked()
    W = data_of()["W"]
    found = pmt.comparisons(idata, model, {"two": 1}, var_name="linear", **QUIET)["two"]
    beta = idata["posterior"]["beta"].sel(term="two").to_numpy()
    np.testing.assert_allclose(
        found[..., 0, :], np.broadcast_to(beta[..., None], found.shape[:2] + (N,)), rtol=1e-9
    )
    assert W.shape == (N, 2)
    found = pmt.comparisons(idata, model, {"g": ("south", "west")}, var_name="p", **QUIET)
    assert found["g_contrast"].item() == "west - south"
    wanted = by_pymc("p", g=np.full(N, 2)) - by_pymc("p", g=np.full(N, 1))
    np.testing.assert_allclose(found["g"][..., 0, :], wanted, rtol=1e-10, atol=1e-15)
    curve = pmt.partial_dependence(idata, model, "g", var_name="p", **QUIET)["average"]
    assert curve["g"].to_numpy().tolist() == SCHOOLS
    named = {"X": frame(3, 5), "z": 1.0, "g": ["west", "north", "west"]}
    coded = {**named, "z": np.ones(3), "g": [2, 0, 2]}
    both = [
        pmt.predictions(idata, model, d, var_name="p", **QUIET)["prediction"]
        for d in (named, coded)
    ]
    np.testing.assert_array_equal(*both)


def test_one_column_of_two_forests_changes_in_both():
    model, idata = asked()
    found = pmt.comparisons(idata, model, {"age": (0.2, 0.9)}, var_name="hurdle", **QUIET)["age"]
    ends = [by_pymc("hurdle", X=(X := frame().assign(age=v)), only=X[["age"]]) for v in (0.2, 0.9)]
    np.testing.assert_allclose(found[..., 0, :], ends[1] - ends[0], rtol=1e-10, atol=1e-14)
    new = frame(4, 11)  # all columns of the other forest are among them
    at = pmt.predictions(idata, model, {"X": new}, var_name="hurdle", **QUIET)["prediction"]
    np.testing.assert_allclose(at, by_pymc("hurdle", X=new, only=new[["age"]]), rtol=1e-12)


def test_numbers_of_the_models_rows_stay_with_their_row():
    model, idata = asked()
    found = pmt.comparisons(idata, model, {"age": (0.2, 0.9)}, var_name="own", **QUIET)["age"]
    inside = pmt.comparisons(idata, model, {"age": (0.2, 0.9)}, var_name="f", **QUIET)["age"]
    np.testing.assert_allclose(found, inside, atol=1e-12)
    few = {"subsample": 4, "random_state": 1, "kind": "individual", **QUIET}
    curve = pmt.partial_dependence(idata, model, "k", grid=[0.5], var_name="own", **few)[
        "individual"
    ]
    wanted = by_pymc("own", X=frame().assign(k=0.5))
    np.testing.assert_allclose(curve[..., 0], wanted[..., curve["row"].to_numpy()], rtol=1e-12)
    pmt.accumulated_effects(idata, model, "age", var_name="own", **QUIET)
    with pytest.raises(ValueError, match=r"own takes an entry of \[.eps.\] for each row.*unknown"):
        pmt.predictions(idata, model, frame(N, 3), var_name="own", **QUIET)


def test_groups_that_were_not_seen_are_drawn_once_for_each_draw():
    model, idata = asked()
    new, data = frame(6, 12), {"z": 0.0, "g": ["north", "new", "new", "other", "west", "other"]}
    with model:
        pmt.set_data({}, coords={"school": [*SCHOOLS, "new", "other"]})
        try:
            options = {"var_name": "p", "random_state": 4, **QUIET}
            found = pmt.predictions(idata, model, {"X": new, **data}, **options)["prediction"]
            again = pmt.predictions(idata, model, {"X": new, **data}, **options)["prediction"]
        finally:
            pmt.set_data({}, coords={"school": SCHOOLS})
    np.testing.assert_array_equal(found, again)
    f = by_pymc("f", X=new)
    effect = np.log(found / (1 - found)).to_numpy() - f
    a = idata["posterior"]["a"].to_numpy()
    np.testing.assert_allclose(effect[..., [0, 4]], a[..., [0, 2]], rtol=0, atol=1e-10)
    np.testing.assert_allclose(effect[..., 1], effect[..., 2], atol=1e-10)
    np.testing.assert_allclose(effect[..., 3], effect[..., 5], atol=1e-10)
    assert (abs(effect[..., 1] - effect[..., 3]) > 1e-6).all()


def test_the_mean_over_new_groups_is_that_of_their_population():
    """Each row of its own new group: the mean over rows is one over groups, here in closed form."""
    model, idata = asked()
    labels = [*SCHOOLS, *(f"new {k}" for k in range(4000))]
    row = frame(1, 5)
    with model:
        pmt.set_data({}, coords={"school": labels})
        try:
            data = {"X": pd.concat([row] * 4000), "z": 0.0, "g": np.arange(3, 4003)}
            options = {"var_name": "p", "random_state": 4, "by": True, **QUIET}
            found = pmt.predictions(idata, model, data, **options)["prediction"]
        finally:
            pmt.set_data({}, coords={"school": SCHOOLS})
    f, tau = by_pymc("f", X=row)[..., 0], idata["posterior"]["tau"].to_numpy()
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    values = 1 / (1 + np.exp(-(f[..., None] + tau[..., None] * nodes)))
    wanted = values @ weights / weights.sum()
    # an sd of a probability is at most .5, so 5 standard errors are below 5 * .5 / sqrt(4000)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=0.04)


def test_draws_are_thinned_evenly():
    model, idata = asked()
    few = pmt.predictions(idata, model, var_name="p", draws=3, **QUIET)["prediction"]
    assert few["draw"].to_numpy().tolist() == [0, 2, 5]
    np.testing.assert_array_equal(few, idata["posterior"]["p"].isel(draw=[0, 2, 5]))


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        (None, "total", "row i of total depends on other rows"),
        (None, "ranked", "row i of ranked depends on other rows"),
        (None, "centred", "row i of centred depends on other rows"),
        (frame(5, 1), "p", r"p depends on \['z', 'g'\], with an entry for each row: give these"),
        ({"X": frame(5, 1), "z": 1.0}, "p", r"p depends on \['g'\], with an entry"),
        ({"X": frame(5, 1), "z": np.ones(4), "g": 1}, "p", "the new rows have different numbers"),
        ({"z": np.ones(4)}, "p", "4.* entries for the 14 rows of X"),
        ({"z": np.ones((N, 2))}, "p", r"z has the shape \(14, 2\).*of shape \(rows,\)"),
        ({"z": np.full(N, np.nan)}, "p", "z holds numbers that are not finite"),
        ({"g": np.full(N, 0.5)}, "p", "'g' is int\\d+ in the model, which cannot hold 0.5"),
        ({"g": ["east"] * N}, "p", "'east' is no label of g: choose from"),
        ({"zz": 1}, "p", r"data: \['zz'\] are not data variables of the model, which has"),
        ({"price": [1.0, 2.0]}, "bill", r"price has the shape \(2,\).*of shape \(\)"),
        (
            {"X": frame(), "only": frame(N, 5)[["age"]]},
            "hurdle",
            "other numbers in the column 'age'",
        ),
    ],
)
def test_what_is_wrong_with_data_is_said(data, name, message):
    model, idata = asked()
    with pytest.raises(ValueError, match=message):
        pmt.predictions(idata, model, data, var_name=name, **QUIET)


def test_indices_past_the_end_are_refused():
    model, idata = asked()
    with pytest.raises(IndexError, match="g picks entry 3 of a, which has 3"):
        pmt.predictions(idata, model, {"g": np.full(N, 3)}, var_name="p", **QUIET)
    with pytest.raises(ValueError, match="'z' is data of the model beside X, which has no missing"):
        pmt.comparisons(idata, model, {"z": (0, None)}, var_name="p", **QUIET)
    given = {"var_name": "of_arms", **QUIET}
    for step in (None, 1, 2.5):
        with pytest.raises(ValueError, match="'arm' holds whole numbers.* such as step=2, or"):
            pmt.slopes(idata, model, "arm", step=step, **given)
    with pytest.raises(ValueError, match="'price' is data of the model without an entry for each"):
        pmt.comparisons(idata, model, {"price": (0, 1)}, var_name="bill", **QUIET)


def test_rows_set_anew_have_none_of_the_numbers_of_the_old_ones():
    model, idata = asked()
    with pm.Model() as other:
        f = pmt.BART("f", pmt.Data("X", frame()), m=2, leaf=LEAF)
        z = pm.Data("z", np.arange(N) * 1.0)
        pm.Deterministic("latent", f + pm.Normal("of_row", shape=f.shape))
        pm.Deterministic("beside", f + z)
        prior = pm.sample_prior_predictive(2, random_seed=1)
    draws = xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})
    found = pmt.predictions(draws, other, var_name="latent", **QUIET)["prediction"]
    np.testing.assert_allclose(found, draws["posterior"]["latent"], rtol=1e-12)
    with other:
        pmt.set_data({"X": frame(5, 2)})
    with pytest.raises(ValueError, match=f"entry for each of {N} rows, but X has 5 rows now"):
        pmt.predictions(draws, other, var_name="latent", **QUIET)
    with pytest.raises(ValueError, match="The data have different numbers of rows now"):
        pmt.predictions(draws, other, var_name="beside", **QUIET)
    with other:  # one row, as any other number of them
        pmt.set_data({"X": frame(1, 2), "z": [3.0]})
    found = pmt.predictions(draws, other, var_name="beside", **QUIET)["prediction"]
    f = pmt.predictions(draws, other, var_name="f", **QUIET)["prediction"]
    np.testing.assert_allclose(found, f + 3.0, rtol=1e-12)
    with model:  # after sampling
        later = pm.Deterministic("later", 2.0 * model["p"])
    found = pmt.predictions(idata, model, var_name="later", **QUIET)["prediction"]
    np.testing.assert_allclose(found, 2 * idata["posterior"]["p"], rtol=1e-12)
    assert later.name not in idata["posterior"]


def test_what_the_errors_propose_comes_through():
    """What the tests above do not do anyway: other names, one X with a column, frames for X."""
    X = frame()[["age", "k"]]
    with pm.Model() as model:
        data = pm.Data("X", X.to_numpy())
        f = pmt.BART("f", data, m=2, leaf=LEAF)
        pm.Deterministic("both", f + pm.Data("other", np.arange(N) * 1.0))
        pm.Deterministic("made", f + 2.0 * data[:, 0])
        pm.Deterministic("effect", pm.Data("dose", np.arange(N) * 1.0) * f)
        h = pmt.BART("h", X[["k"]], m=2, leaf=LEAF)
        q = pmt.BART("q", X, m=2, leaf=LEAF)
        pm.Deterministic("sum", h + q)
        prior = pm.sample_prior_predictive(2, random_seed=1)
    posterior = prior["prior"].to_dataset()
    idata = xr.DataTree.from_dict({"posterior": posterior})
    for name in ("both", "made", "sum"):
        found = pmt.predictions(idata, model, var_name=name, **QUIET)["prediction"]
        np.testing.assert_allclose(found, posterior[name], rtol=1e-12)
    step = pmt.comparisons(idata, model, {0: (0.0, 1.0)}, var_name="made", **QUIET)["x0"]
    inside = pmt.comparisons(idata, model, {0: (0.0, 1.0)}, var_name="f", **QUIET)["x0"]
    np.testing.assert_allclose(step, inside + 2.0, rtol=0, atol=1e-12)
    slope = pmt.slopes(idata, model, "dose", step=0.5, var_name="effect", **QUIET)["dose"]
    np.testing.assert_allclose(slope, posterior["f"], rtol=0, atol=1e-12)
    new = {"X": X.to_numpy()[:3], "other": 1.0}
    found = pmt.predictions(idata, model, new, var_name="both", **QUIET)["prediction"]
    np.testing.assert_allclose(found, posterior["f"][..., :3] + 1.0, rtol=1e-12)
    model_of_all, draws = asked()
    bills = [
        pmt.predictions(draws, model_of_all, {"price": p}, var_name="bill", **QUIET)["prediction"]
        for p in (1.0, 3.0)
    ]
    np.testing.assert_allclose(bills[1], 3.0 * bills[0], rtol=1e-12)


def test_a_name_with_two_contents_is_refused():
    X = frame()
    with pm.Model() as model:
        f = pmt.BART("f", pmt.Data("X", X), m=2, leaf=LEAF)
        other = pm.Data("age", np.arange(N) * 1.0)
        pm.Deterministic("both", f + other)
        made = pt.concatenate([X[["age", "k"]].to_numpy(), other[:, None]], axis=1)
        pm.Deterministic("made", pmt.BART("q", made, m=2, leaf=LEAF) + other)
        prior = pm.sample_prior_predictive(2, random_seed=1)
    idata = xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})
    with pytest.raises(ValueError, match="'age' is a column of X and of age, with other contents"):
        pmt.predictions(idata, model, var_name="both", **QUIET)
    with pytest.raises(ValueError, match=r"made evaluates trees at rows made of \['age'\]"):
        pmt.predictions(idata, model, var_name="made", **QUIET)
