"""Frames with levels and missing cells, from the model to predictions at new frames."""

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytest
import xarray as xr
from support import twin
from support.check import check_value
from support.small_models import FAST, forest_of
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.core.columns.cells import MAX_CUT, MISSING
from pymc_trees.core.value.text import tree_text
from pymc_trees.distributions.data.table import schema_of
from pymc_trees.distributions.forest_inputs import declared

pytestmark = pytest.mark.usefixtures("quick_compile")
N = 24
CITIES = np.array(["Oslo", "Rome", "Bern", "Wien"])
rng = np.random.default_rng(3)
CITY = rng.integers(0, 4, N)
CITY[:4] = range(4)
WIND = rng.normal(size=N).round(1)
WIND[[2, 9, 17]] = np.nan
Y = np.where(CITY % 2 == 0, 1.0, -1.0) + 0.3 * np.nan_to_num(WIND) + 0.1 * rng.normal(size=N)
SORTED = sorted(CITIES)
CODES = np.array([SORTED.index(c) for c in CITIES])[CITY].astype(float)


def frame(kind="string", city=CITY, wind=WIND):
    """The same table in one of the forms users have it in."""
    names = CITIES[city]
    if kind == "polars":
        cells = [None if np.isnan(w) else float(w) for w in wind]
        return pl.DataFrame({"city": names.tolist(), "wind": cells})
    if kind == "polars category":
        table = pl.DataFrame({"city": names.tolist(), "wind": wind})
        return table.with_columns(pl.col("city").cast(pl.Categorical))
    if kind == "polars enum":
        table = pl.DataFrame({"city": names.tolist(), "wind": wind})
        return table.with_columns(pl.col("city").cast(pl.Enum(["none", *CITIES])))
    table = pd.DataFrame({"city": names, "wind": wind})
    if kind == "category":
        table["city"] = pd.Categorical(table["city"], categories=["none", *CITIES])
    if kind == "object":
        table["city"] = table["city"].astype(object)
        table["wind"] = pd.array(wind, dtype="Float64")
    return table


def model_of(X, n_cuts=None, **settings):
    with pm.Model() as model:
        mu = pmt.BART(
            "mu", X, Y, m=4, alpha=0.9, beta=0.7, max_nodes=188, n_cuts=n_cuts, **settings
        )
        pm.Normal("y", mu, 0.4, observed=Y, shape=mu.shape)
    return model


def sample(model, step=None, draws=12):
    with model:
        return pm.sample(
            draws,
            tune=10,
            chains=1,
            cores=1,
            random_seed=1,
            step=None if step is None else step(),
            **FAST,
        )


def check_draws_of(model, idata, weights=None):
    forest, layout, X = forest_of(model)
    known = declared(forest)
    stamp, kinds, cuts = known.fingerprint, known.kinds, known.cuts
    for value in idata.posterior["mu_forest"].values[0, ::4]:
        value = np.ascontiguousarray(value)
        assert check_value(value, X, layout, float(stamp), cuts, weights, kinds) == []


KINDS = ["string", "category", "object", "polars", "polars category", "polars enum"]


@pytest.fixture(scope="module")
def by_codes():
    """Draws of a table whose levels are given as codes."""
    model = model_of(np.column_stack([CODES, WIND]), split_rules=["subset", "continuous"])
    idata = sample(model, pmt.CGM)
    check_draws_of(model, idata)
    return model, idata


@pytest.mark.parametrize("kind", KINDS)
def test_every_form_of_levels_gives_the_same_draws(kind, by_codes):
    model = model_of(frame(kind))
    assert schema_of(model["mu_X"]).levels == (tuple(SORTED), None)
    np.testing.assert_array_equal(forest_of(model)[2], forest_of(by_codes[0])[2])
    if kind in ("category", "polars"):
        idata = sample(model, pmt.CGM)
        for name in ("mu_forest", "mu"):
            assert (idata.posterior[name] == by_codes[1].posterior[name]).all()


STEPS = [pmt.CGM, pmt.GrowPrune, pmt.ParticleGibbs, pmt.Hybrid]


ON = [*((step, None) for step in STEPS), (pmt.CGM, 5)]


@pytest.mark.parametrize(("step", "n_cuts"), tiers(ON, quick=[(pmt.CGM, None)]))
def test_draws_are_valid_forests(step, n_cuts):
    """Every invariant of the data model, of the grid prior too, and the log-probability."""
    model = model_of(frame(), n_cuts, split_rules={"city": "onehot"} if n_cuts else None)
    idata = sample(model, step)
    check_draws_of(model, idata)
    forest, layout, X = forest_of(model)
    value = idata.posterior["mu_forest"].values[0, -1]
    assert (value[: layout.max_nodes, 0] >= 0).any()
    logp = model.compile_logp(vars=[forest])({"mu_forest": value})
    assert np.isfinite(logp)
    pmt.check_draws(idata, model)


def test_new_frames_unseen_levels_and_missing_cells(by_codes):
    """Predictions are those of a plain walk; an unseen level goes where missing cells go."""
    model, idata = by_codes
    model = model_of(frame())
    new = frame().iloc[:9].copy()
    new.loc[0, "city"], new.loc[1, "city"], new.loc[4, "wind"] = "Paris", None, np.nan
    with model:
        pmt.set_data({"mu_X": new[["wind", "city"]]})
        X_new = model["mu_X"].get_value()
        pred = pm.sample_posterior_predictive(
            idata, predictions=True, var_names=["mu", "y"], random_seed=1, progressbar=False
        )
    assert (X_new[:2, 0] == MISSING).all() and (X_new[2:, 0] == CODES[2:9]).all()
    layout = forest_of(model)[1]
    values = idata.posterior["mu_forest"].values[0]
    walked = [twin.f(twin.read_trees(value, layout), X_new, True)[:, 0] for value in values]
    np.testing.assert_allclose(pred.predictions["mu"].values[0], walked, atol=1e-10)
    assert pred.predictions["y"].shape == (1, len(values), 9)
    with model:  # PyMC's own function does the same
        pm.set_data({"mu_X": new})
    assert (model["mu_X"].get_value() == X_new).all()


def test_saved_draws_predict_the_same(by_codes, tmp_path):
    """Through a file, into a model that is declared anew."""
    path = tmp_path / "fit.nc"
    by_codes[1].to_netcdf(path, engine="h5netcdf")
    new = frame().iloc[:9].assign(city=["Paris", None, *CITIES[CITY[2:9]]])
    found = []
    for idata in (by_codes[1], xr.open_datatree(path, engine="h5netcdf")):
        model = model_of(frame("category"))
        pmt.check_draws(idata, model)
        with model:
            pmt.set_data({"mu_X": new})
            pred = pm.sample_posterior_predictive(
                idata, predictions=True, var_names=["mu"], progressbar=False
            )
        found.append(pred.predictions["mu"].values)
    assert (found[0] == found[1]).all() and found[0].std() > 0


def test_a_level_out_of_range_in_model_data_counts_as_missing():
    """`pm.Data` with codes: nothing stands between the data and the trees."""
    with pm.Model() as model:
        X = pm.Data("X", np.column_stack([CODES, np.nan_to_num(WIND)]))
        pmt.BART("mu", X, Y, m=4, split_rules=["subset", "continuous"], beta=0.5)
    value, layout = pm.draw(model["mu_forest"], random_seed=2), forest_of(model)[1]
    new = np.array([[7.0, 0.1], [np.nan, 0.1], [MISSING, 0.1], [2.0, 0.1]])
    with model:
        f = pmt.evaluate(model["mu_forest"], new)
        out = f.eval({model["mu_forest"]: value})
        assert out[0] == out[1] == out[2]
        assert out[3] == twin.f(twin.read_trees(value, layout), new[3:], True)[0, 0]
        wrong = pmt.evaluate(model["mu_forest"], np.array([[0.5, 0.1]]))
        if (value[: layout.max_nodes, 0] >= 4).any():
            with pytest.raises(ValueError, match="level numbers.*pymc_trees.set_data"):
                wrong.eval({model["mu_forest"]: value})


def test_missing_cells_where_training_had_none():
    """A fair coin of each split of each draw: as often left as right, and always the same."""
    X = np.column_stack([np.linspace(0, 1, 30)])
    with pm.Model() as model:
        pmt.BART("mu", X, leaf=pmt.NormalLeaf(0, 1), m=1, alpha=0.999, beta=9.0)
    values = pm.draw(model["mu_forest"], 400, random_seed=3)
    with model:
        f = model.compile_fn(
            pmt.evaluate(model["mu_forest"], np.array([[np.nan], [-1.0], [2.0]])),
            inputs=[model["mu_forest"]],
            point_fn=False,
        )
    found = np.array([f(value) for value in values])
    again = np.array([f(value) for value in values])
    assert (found == again).all()
    single = values[:, 2, 0] < 0  # one split: the left child of the root is a leaf, and the last
    single &= values[:, 3, 0] == -2
    went_left = (found[:, 0] == found[:, 1])[single]
    assert single.sum() > 200
    assert abs(went_left.mean() - 0.5) < 5 * 0.5 / np.sqrt(single.sum())
    assert np.isin(found[single, 0][~went_left], found[single, 2]).all()


def test_ordered_categories_and_bools_are_numbers():
    size = pd.Categorical(["s", "l", "m"] * 8, categories=["s", "m", "l"], ordered=True)
    table = pd.DataFrame({"size": size, "flag": pd.array([True, None, False] * 8, dtype="boolean")})
    model = model_of(table)
    X = forest_of(model)[2]
    assert X[:3].tolist() == [[0, 1], [2, MISSING], [1, 0]]
    assert (declared(forest_of(model)[0]).kinds == 0).all()
    other = model_of(table, split_rules={"size": "subset"})
    assert declared(forest_of(other)[0]).kinds.tolist() == [3, 0]


def test_names_reach_coordinates_and_weights():
    model = model_of(frame(), split_prior={"wind": 0.0})
    assert model.coords["mu_X_column"] == ("city", "wind")
    idata = sample(model, pmt.CGM)
    check_draws_of(model, idata, np.array([1.0, 0.0]))
    assert idata.constant_data["mu_X"].coords["mu_X_column"].values.tolist() == ["city", "wind"]
    splits = idata.sample_stats["variable_inclusion"]
    assert (splits.sel(column="wind") == 0).all()
    assert (splits.sel(column="city") > 0).any()
    _, layout, _ = forest_of(model)
    schema = schema_of(model["mu_X"])
    text = tree_text(idata.posterior["mu_forest"].values[0, -1], layout, 0, *schema[::2])
    assert "city in {" in text or text.startswith("leaf")


@pytest.mark.full
def test_unknown_split_weights_of_columns_of_levels():
    """Their step and the log-probability read the columns off the rules."""
    with pm.Model() as model:
        weights = pm.Dirichlet("weights", np.ones(2))
        mu = pmt.BART(
            "mu", frame(), Y, m=4, alpha=0.9, beta=0.7, max_nodes=188, split_prior=weights
        )
        pm.Normal("y", mu, 0.4, observed=Y, shape=mu.shape)
    idata = sample(model)
    logp = model.compile_logp(vars=[model["mu_forest"]])
    value = idata.posterior["mu_forest"].values[0, -1]
    log_odds = model.initial_point()["weights_simplex__"]
    found = [logp({"mu_forest": value, "weights_simplex__": log_odds + d}) for d in (0.0, 1.5)]
    splits = value[: forest_of(model)[1].max_nodes, 0]
    assert np.isfinite(found).all() and (found[0] != found[1]) == (splits >= 0).any()
    assert idata.posterior["weights"].values.std() > 0


def test_text_of_rules():
    from pymc_trees.core.value.text import rule_text

    names, levels = ["city", "wind"], [tuple(SORTED), None]
    shown = [
        (4, 5.0, "city in {Bern, Rome}"),
        (6, 5.0, "city in {Bern, Rome} or missing"),
        (4, 15.0, "city is present"),
        (6, 0.0, "city is missing"),
        (1, 0.25, "wind <= 0.25"),
        (3, 0.25, "wind <= 0.25 or missing"),
        (1, MAX_CUT, "wind is present"),
        (3, -MAX_CUT, "wind is missing"),
    ]
    for code, cut, text in shown:
        assert rule_text(code, cut, names, levels) == text
    assert rule_text(4, 5.0, names) == "city in {0, 2}"
    assert rule_text(2, 5.0, ["grade"], [(1.0, 2.0, 2.5)]) == "grade in {1, 2.5}"
    assert rule_text(0, 1.123, ["size"], [("small", "middle", "large")]) == "size <= middle"


def test_two_kinds_of_rules_in_a_value_of_another_kind_are_refused():
    """A value whose checksum is right for another design is no forest of this one."""
    model, other = model_of(frame()), model_of(frame(), split_rules={"city": "onehot"})
    value = pm.draw(model["mu_forest"], random_seed=1)
    assert np.isfinite(model.compile_logp(vars=[model["mu_forest"]])({"mu_forest": value}))
    assert other.compile_logp(vars=[other["mu_forest"]])({"mu_forest": value}) == -np.inf
