"""Predictors of models with random columns: the numbers of the model, which has the truth.

That `predictions` integrates exactly is tested in tests/posterior. Here a predictor, read from its
file, gives the same at rows that have the column, lack it, or have it in part; quantiles of a new
observation are those of a mixture that is written out.
"""

import json

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from scipy import stats
from support.predictor_models import LEAF, TREES, Case, drawn

import pymc_trees as pmt

N = 14
RNG = np.random.default_rng(4)
X, RELATED, W = RNG.random((N, 1)), RNG.normal(size=N), RNG.normal(size=N)
CUTS = np.linspace(-2.0, 2.0, 9)
NEW = pd.DataFrame({"x0": [0.1, 0.5, 0.9], "related": [0.0, -0.7, 1.5]})
FOREST = {"leaf": LEAF, "m": 4} | TREES


def scalars_and_data() -> Case:
    """Parents that are scalars, columns of X and data beside it; two functions of f."""
    with pm.Model() as model:
        data, related = pm.Data("X", X), pm.Data("related", RELATED)
        slope, spread = pm.Normal("slope"), pm.HalfNormal("spread")
        z = pm.Normal("z", slope * related + data[:, 0], 0.3 + spread, shape=N)
        f = pmt.BART("f", pmt.with_columns(data, dose=z, cuts={"dose": CUTS}), **FOREST)
        pm.Deterministic("rate", pm.math.exp(f))
        pm.Deterministic("both", f + 0.5 * z)
        pm.Normal("y", f, pm.HalfNormal("sigma"), observed=W, shape=f.shape)
    return drawn(model, {"X": NEW[["x0"]].to_numpy(), "related": NEW["related"].to_numpy()})


def forest() -> Case:
    """The mean of the column is a forest; its noise too."""
    with pm.Model() as model:
        g = pmt.BART("g", X, **FOREST)
        z = pm.Normal("z", g, 0.6, shape=N)
        f = pmt.BART("f", pmt.with_columns(X, z=z, cuts={"z": CUTS}), **FOREST)
        h = pmt.BART("h", pmt.with_columns(X, z=z, cuts={"z": CUTS[::2]}), **FOREST)
        pm.Normal("y", f, pm.math.exp(h - 1), observed=W)
    return drawn(model, X[:3] + 0.01)


def two_columns() -> Case:
    """All pairs of intervals, of laws with bounds; counts."""
    with pm.Model() as model:
        z = pm.Uniform("z", -1.0, pm.Uniform("top", 0.5, 1.5), shape=N)
        u = pm.Exponential("u", 2.0, shape=N)
        columns = pmt.with_columns(X, z=z, u=u, cuts={"z": CUTS, "u": [0.3, 1.0, 2.0]})
        f = pmt.BART("f", columns, **FOREST)
        pm.Poisson("y", pm.math.exp(f), observed=np.ones(N, dtype=int))
    return drawn(model, X[:3])


def classes() -> Case:
    """A Bernoulli, in a frame with levels."""
    frame = pd.DataFrame({"a": X[:, 0], "town": np.array(["Bonn", "Genf"])[(X[:, 0] > 0.5) * 1]})
    with pm.Model() as model:
        z = pm.Normal("z", 0.0, 1.0, shape=N)
        f = pmt.BART("f", pmt.with_columns(frame, z=z, cuts={"z": CUTS}), **FOREST)
        pm.Deterministic("p", pm.math.sigmoid(f))
        pm.Bernoulli("y", logit_p=f, observed=W > 0)
    return drawn(model, frame.iloc[[1, 4, 6]])


def kinds() -> Case:
    """A category that is the group of a dose, and counts that are split by cuts; in chains."""
    size = np.resize([4, 30, 12], N)
    with pm.Model() as model:
        centre = pm.Normal("centre", shape=3)
        kind = pm.Categorical("kind", pm.Dirichlet("share", np.ones(3)), shape=N)
        dose = pm.Normal("dose", centre[kind], 0.6, shape=N)
        count = pm.Binomial("count", pm.Data("size", size), pm.Beta("p", 2, 2), shape=N)
        columns = {"kind": kind, "dose": dose, "count": count}
        cuts = {"dose": CUTS[::2], "count": [2, 5.5, 11]}
        f = pmt.BART("f", pmt.with_columns(X, cuts=cuts, **columns), **FOREST)
        pm.Deterministic("beside", f + centre[kind] * count)
        pm.Normal("y", f, 0.7, observed=W)
    return drawn(model, {"X": X[:3] + 0.01, "size": np.array([20, 3, 0])})


def small_laws() -> Case:
    """A forest says how likely a 1 is; whole numbers; probabilities of each row."""
    with pm.Model() as model:
        ill = pm.Bernoulli("ill", logit_p=pmt.BART("g", X, **FOREST), shape=N)
        z = pm.DiscreteUniform("z", -1, 3, shape=N)
        logits = pm.Normal("slope", shape=4) * pm.Data("related", RELATED)[:, None]
        kind = pm.Categorical("kind", pm.math.softmax(logits, axis=1), shape=N)
        columns = pmt.with_columns(X, ill=ill, z=z, kind=kind)
        f = pmt.BART("f", columns, **FOREST)
        pm.Normal("y", f, 0.7, observed=W)
    return drawn(model, {"X": X[:3] + 0.01, "related": RELATED[:3]})


CASES = {
    "data": scalars_and_data,
    "forest": forest,
    "two": two_columns,
    "classes": classes,
    "kinds": kinds,
    "small": small_laws,
}


@pytest.fixture(scope="module", params=CASES)
def both(request, tmp_path_factory):
    case = CASES[request.param]()
    made = pmt.predictor(case.idata, case.model)
    path = tmp_path_factory.mktemp("fit") / "fit.pmt"
    return case, pmt.load(made.save(path))


def of_model(case, data, name):
    made = pmt.predictions(case.idata, case.model, data, var_name=name, progressbar=False)
    return made["prediction"].to_numpy()


@pytest.mark.filterwarnings("ignore:Numba will use object mode")  # DiscreteUniform in PyMC
def test_functions_are_those_of_the_model(both):
    case, predictor = both
    for name in predictor.functions:
        if name == "both":
            continue
        at = predictor.draws(case.new, var_names=name)[name].to_numpy()
        np.testing.assert_allclose(at, of_model(case, case.new, name), rtol=0, atol=1e-10)
        mean = predictor.predict(case.new, of=name)
        np.testing.assert_allclose(mean, at.mean(axis=(0, 1)), rtol=0, atol=1e-12)
    fewer = predictor.thinned(2)
    few, all_draws = (one.draws(case.new, var_names="f")["f"] for one in (fewer, predictor))
    np.testing.assert_allclose(few, all_draws[:, [0]], rtol=0, atol=1e-12)


def test_cells_that_are_known():
    case = scalars_and_data()
    predictor = pmt.predictor(case.idata, case.model)
    cells = np.array([-1.2, np.nan, 0.3])
    some = {"X": NEW[["x0"]].assign(dose=cells), "related": NEW["related"].to_numpy()}
    whole = {"X": NEW[["x0"]].assign(dose=[-1.2, 0.0, 0.3]), "related": NEW["related"].to_numpy()}
    for data, names in ((some, ("f", "rate")), (whole, ("f", "rate", "both"))):
        for name in names:
            at = predictor.draws(data, var_names=name)[name].to_numpy()
            truth = of_model(case, data if name != "both" else {"X": data["X"]}, name)
            np.testing.assert_allclose(at, truth, rtol=0, atol=1e-10)
    held = whole["X"].to_dict("records")
    np.testing.assert_array_equal(
        predictor.predict({"X": held, "related": 0.0}, of="f"), predictor.predict(whole, of="f")
    )
    found = predictor.function(whole, lambda f, sigma: f + sigma)
    assert found.shape == (2, 4, 3)


def test_a_new_observation():
    """Mean, sd and quantiles are those of a mixture over draws and cells; draws are of it."""
    case = scalars_and_data()
    predictor = pmt.predictor(case.idata, case.model)
    slope, spread, sigma = (
        case.idata.posterior[name].to_numpy().ravel() for name in ("slope", "spread", "sigma")
    )
    points = np.concatenate([[-3.0], (CUTS[1:] + CUTS[:-1]) / 2, [3.0]])
    x, related = NEW.iloc[2]
    law = stats.norm((slope * related + x)[:, None], 0.3 + spread[:, None])
    share = np.diff(law.cdf(CUTS), axis=1, prepend=0.0, append=1.0)
    f = of_model(case, pd.DataFrame({"x0": x, "dose": points}), "f").reshape(len(slope), -1)
    weight, mean, sd = (v.ravel() for v in np.broadcast_arrays(share / 8, f, sigma[:, None]))
    data = {"X": [[x]], "related": [related]}
    expected = (weight * mean).sum()
    np.testing.assert_allclose(predictor.predict(data), expected, atol=1e-12)
    variance = (weight * (sd**2 + mean**2)).sum() - expected**2
    np.testing.assert_allclose(predictor.predict(data, "sd", of="y"), variance**0.5, atol=1e-12)
    q = (0.05, 0.5, 0.9)
    [at] = predictor.predict(data, quantiles=q, of="y")
    below = (weight * stats.norm.cdf(at[:, None], mean, sd)).sum(axis=1)
    np.testing.assert_allclose(below, q, atol=1e-10)
    # 8 draws for each of 4,000 equal rows: shares of each draw have an error below 0.008
    many = {"X": np.full((4_000, 1), x), "related": np.full(4_000, related)}
    y = predictor.sample_y(many, random_seed=1)
    found = (y[:, :, None] <= at).mean(axis=1)
    truth = (share[..., None] * stats.norm.cdf((at - f[..., None]) / sigma[:, None, None])).sum(1)
    assert abs(found - truth).max() < 5 * 0.008


def test_another_table_has_as_many_columns():
    """The cuts of a random column are those of forests of its own table."""
    other = pd.DataFrame(
        {"a": X[:, 0], "town": np.array(["Bonn", "Genf", "Ulm"])[np.arange(N) % 3]}
    )
    with pm.Model() as model:
        z = pm.Normal("z", 0.0, 1.0, shape=N)
        f = pmt.BART("f", pmt.with_columns(pm.Data("X", X), z=z, cuts={"z": CUTS}), **FOREST)
        h = pmt.BART("h", pmt.Data("other", other), **FOREST)
        pm.Deterministic("total", f + h)
        pm.Normal("y", f + h, 0.7, observed=W)
    case = drawn(model, {"X": X[:3] + 0.01, "other": other.iloc[[1, 2, 6]]})
    predictor = pmt.predictor(case.idata, case.model)
    at = predictor.draws(case.new, var_names="total")["total"].to_numpy()
    np.testing.assert_allclose(at, of_model(case, case.new, "total"), rtol=0, atol=1e-10)


def test_functions_that_do_not_take_the_column():
    """Its law need not be held for them, though the rows are of one table."""
    with pm.Model() as model:
        data = pm.Data("X", X)
        z = pm.Gamma("z", 2.0, 1.0, shape=N)
        g = pmt.BART("g", data, **FOREST)
        f = pmt.BART("f", pmt.with_columns(data, z=z), **FOREST)
        pm.Normal("y", f, pm.math.exp(g - 1), observed=W)
    case = drawn(model, {"X": X[:3] + 0.01})
    predictor = pmt.predictor(case.idata, case.model)
    at = predictor.draws(case.new, var_names="g")["g"].to_numpy()
    np.testing.assert_allclose(at, of_model(case, case.new, "g"), rtol=0, atol=1e-10)
    with pytest.raises(ValueError, match="X lacks cells of the random column 'z'"):
        predictor.draws(case.new, var_names="f")


def test_many_values_are_refused():
    with pm.Model() as model:
        many = pm.Binomial("many", pm.Data("size", np.full(N, 12)), 0.5, shape=N)
        f = pmt.BART("f", pmt.with_columns(X, many=many), **FOREST)
        pm.Normal("y", f, 0.7, observed=W)
    case = drawn(model, X[:3])
    predictor = pmt.predictor(case.idata, case.model)
    with pytest.raises(ValueError, match="'many' has 20001 values"):
        predictor.predict({"X": X[:3], "size": np.array([3, 20_000, 4])})


def test_counts_and_classes():
    """The mean of a nonlinear response is integrated, and draws have it."""
    case = two_columns()
    predictor, rows = pmt.predictor(case.idata, case.model), np.repeat(case.new[:1], 4_000, axis=0)
    truth = pmt.predictions(
        case.idata, case.model, case.new, var_name="f", func=np.exp, progressbar=False
    )["prediction"].mean(("chain", "draw"))
    np.testing.assert_allclose(predictor.predict(case.new), truth, atol=1e-10)
    y = predictor.sample_y(rows, random_seed=1).mean()
    error = predictor.sample_y(rows, random_seed=2).std() / np.sqrt(8 * 4_000)
    assert abs(y - truth[0]) < 5 * error
    case = classes()
    predictor = pmt.predictor(case.idata, case.model)
    p = of_model(case, case.new, "p").mean(axis=(0, 1))
    np.testing.assert_allclose(predictor.predict_proba(case.new)[:, 1], p, atol=1e-10)


def test_other_runtimes_take_the_column_as_known():
    case = scalars_and_data()
    predictor = pmt.predictor(case.idata, case.model)
    [told] = json.loads(predictor.to_json())["random"]
    assert (told["name"], told["law"], told["table"], told["column"]) == ("dose", "normal", 0, 1)
    assert '"dose"' in predictor.to_sql("houses", of="f")


def test_laws_that_are_not_held():
    with pm.Model() as model:
        z = pm.Gamma("z", 2.0, 1.0, shape=N)
        u = pm.Normal("u", z, 1.0, shape=N)
        v = pm.Normal("v", RELATED, 1.0, shape=N)
        f = pmt.BART("f", pmt.with_columns(X, z=z, u=u, v=v), **FOREST)
        pm.Normal("y", f, 0.5, observed=W)
    case = drawn(model, X[:3])
    predictor = pmt.predictor(case.idata, case.model)
    rows = pd.DataFrame({"x0": X[:3, 0], "z": 1.0, "u": 0.5, "v": 0.0})
    held = predictor.draws(rows)["f"].to_numpy()
    np.testing.assert_allclose(held, of_model(case, rows, "f"), atol=1e-10)
    for lacking, words in (
        (["z"], "'z'.*its prior is a Gamma"),
        (["v"], "'v'.*belong to the training rows"),
        (["u", "z"], "'z'.*its prior is a Gamma"),
    ):
        with pytest.raises(ValueError, match=words):
            predictor.predict(rows.drop(columns=lacking))
    np.testing.assert_allclose(
        predictor.draws(rows.drop(columns="u"))["f"],
        of_model(case, rows.drop(columns="u"), "f"),
        atol=1e-10,
    )
    with pytest.raises(ValueError, match="over which function does not integrate"):
        predictor.function(rows.drop(columns="u"), lambda f: f)
    case = scalars_and_data()
    predictor = pmt.predictor(case.idata, case.model)
    with pytest.raises(ValueError, match="takes the column beside its trees"):
        predictor.predict(case.new, of="both")
    with pytest.raises(ValueError, match="lacks .'related'."):
        predictor.predict(NEW[["x0"]])
