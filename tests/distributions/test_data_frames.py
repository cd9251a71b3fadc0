"""Arrays and frames in: `pmt.Data`, `pmt.set_data` and X given to BART."""

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytensor.tensor as pt
import pytest
from support import twin
from support.small_models import FAST, forest_of, step_data
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.distributions.forest_inputs import training_rows

pytestmark = pytest.mark.usefixtures("quick_compile")
X, Y = step_data(20)
LEAF = pmt.NormalLeaf(0, 1)


def as_kind(kind, values, columns=("a", "b")):
    """The same numbers in one of the forms users have them in."""
    values = np.asarray(values)
    if kind == "pandas":
        return pd.DataFrame(values, columns=list(columns))
    if kind == "polars":
        return pl.DataFrame(values, schema=list(columns))
    if kind == "float32":
        return values.astype(np.float32)
    if kind == "fortran":
        return np.asfortranarray(values)
    if kind == "strided":
        return np.repeat(np.repeat(values, 2, axis=0), 3, axis=1)[::2, ::3]
    if kind == "read-only":
        values = values.copy()
        values.flags.writeable = False
        return values
    if kind == "list":
        return values.tolist()
    return values


KINDS = ["numpy", "pandas", "polars", "float32", "fortran", "strided", "read-only", "list"]


@pytest.mark.parametrize("kind", tiers(KINDS, quick=["polars", "strided"]))
def test_every_form_gives_the_same_forest(kind):
    given = as_kind(kind, X.astype(np.float32).astype(float))
    before = given.copy() if isinstance(given, np.ndarray) else None
    with pm.Model() as model:
        mu = pmt.BART("mu", given, Y, m=3)
        pm.Normal("y", mu, 0.5, observed=Y, shape=mu.shape)
        pmt.set_data({"mu_X": as_kind(kind, X[:7])})
        value, fitted = pm.draw([model["mu_forest"], mu], random_seed=1)
        pmt.set_data({"mu_X": given})
        pm.sample(3, tune=3, chains=1, cores=1, random_seed=1, **FAST)
    if before is not None:
        assert (given == before).all()
    forest, layout, X_train = forest_of(model)
    assert X_train.dtype == np.float64
    np.testing.assert_array_equal(X_train, X.astype(np.float32))
    new = X[:7] if kind != "float32" else X[:7].astype(np.float32)
    np.testing.assert_allclose(
        fitted, twin.f(twin.read_trees(value, layout), np.asarray(new))[:, 0], atol=1e-10
    )


@pytest.mark.parametrize("dtype", [int, bool, np.uint8, object])
def test_other_numbers(dtype):
    given = (X * 4).astype(int).astype(dtype)
    with pm.Model() as model:
        pmt.BART("mu", given, Y, m=3)
    assert (forest_of(model)[2] == given.astype(float)).all()


@pytest.mark.parametrize("dtype", ["Int64", "Float32", "boolean"])
def test_pandas_extension_types(dtype):
    frame = pd.DataFrame((X > 0.5).astype(int), columns=["a", "b"]).astype(dtype)
    with pm.Model() as model:
        pmt.BART("mu", frame, Y, m=3)
    np.testing.assert_array_equal(forest_of(model)[2], X > 0.5)


@pytest.mark.parametrize("as_data", tiers([pm.Data, pmt.Data], quick=[pm.Data]))
@pytest.mark.parametrize("kind", tiers(["float32", "int"], quick=["float32"]))
def test_data_of_other_types(as_data, kind):
    values = X.astype(np.float32) if kind == "float32" else (X * 9).astype(int)
    with pm.Model() as model:
        data = as_data("X", values)
        mu = pmt.BART("mu", data, Y, m=3)
        pm.Normal("y", mu, 0.5, observed=Y, shape=mu.shape)
        idata = pm.sample(3, tune=3, chains=1, cores=1, random_seed=1, **FAST)
        pm.set_data({"X": values[:5]})
        pred = pm.sample_posterior_predictive(
            idata, predictions=True, var_names=["mu"], progressbar=False
        )
    assert model["mu"].dtype == "float64"
    np.testing.assert_allclose(
        pred.predictions["mu"].values, idata.posterior["mu"].values[..., :5], atol=1e-10
    )


@pytest.mark.parametrize("how", [pm.set_data, pmt.set_data])
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_columns_of_a_new_frame_are_put_in_order(kind, how):
    with pm.Model():
        data = pmt.Data("X", as_kind(kind, X, ("a", "b")))
        how({"X": as_kind(kind, X[:, ::-1], ("b", "a"))})
        assert (data.get_value() == X).all()
        how({"X": as_kind(kind, X[:4, ::-1], ("b", "a"))})
        assert (data.get_value() == X[:4]).all()
        how({"X": X[:3]})
        assert (data.get_value() == X[:3]).all()


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize(
    ("columns", "said"), [(("a", "z"), r"lacks the columns \['b'\].*'z'"), (("a",), r"\['b'\]")]
)
def test_wrong_columns_are_named(kind, columns, said):
    with pm.Model():
        data = pmt.Data("X", as_kind(kind, X, ("a", "b")))
        with pytest.raises(ValueError, match=said):
            pmt.set_data({"X": as_kind(kind, X[:, : len(columns)], columns)})
        assert (data.get_value() == X).all()


@pytest.mark.parametrize("how", [pm.set_data, pmt.set_data])
def test_wrong_width(how):
    with pm.Model() as model:
        data = pmt.Data("X", X)
        mu = pmt.BART("mu", data, leaf=LEAF, m=3)
        with pytest.raises(ValueError, match="columns"):
            how({"X": np.ones((4, 3))})
            pm.draw(mu)
    assert model["X"] is data


@pytest.mark.parametrize("by", [str, lambda name: None], ids=["name", "variable"])
def test_do_reads_frames_as_set_data_does(by):
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "level": np.resize(["u", "v"], len(X))})
    with pm.Model() as model:
        pmt.BART("mu", frame, leaf=LEAF, m=3)
    key = by("mu_X") or model["mu_X"]
    other = frame.assign(a=1 - X[:, 0]).iloc[:, ::-1]
    fixed = pm.do(model, {key: other})
    with pytest.raises(ValueError, match=r"lacks the columns \['level'\]"):
        pm.do(model, {key: other[["a", "b"]]})
    pmt.set_data({"mu_X": other}, model)
    np.testing.assert_array_equal(fixed["mu_X"].get_value(), model["mu_X"].get_value())
    pmt.set_data({"mu_X": frame.iloc[:, ::-1]}, fixed)  # which still knows its columns
    assert fixed["mu_X"].get_value()[:, 0].tolist() == X[:, 0].tolist()


def test_do_with_a_variable_is_left_to_pymc():
    with pm.Model() as model:
        pmt.BART("mu", pmt.Data("X", X), leaf=LEAF, m=3)
        pm.Normal("z")
    fixed = pm.do(model, {"X": pt.as_tensor(2 * X), "z": 1.0})
    assert fixed["X"].eval().tolist() == (2 * X).tolist() and fixed["z"].eval() == 1.0


def test_set_data_passes_other_variables_on():
    with pm.Model():
        pmt.Data("X", X)
        other = pm.Data("other", np.zeros(20))
        pmt.set_data({"X": X[:3], "other": np.ones(3)})
    assert other.get_value().tolist() == [1.0, 1.0, 1.0]


def test_one_data_variable_serves_several_forests():
    with pm.Model() as model:
        data = pmt.Data("X", as_kind("pandas", X))
        pmt.BART("one", data, leaf=LEAF, m=2)
        pmt.BART("two", data, leaf=LEAF, m=2)
        pmt.set_data({"X": X[:6]})
        one, two = pm.draw([model["one"], model["two"]], random_seed=1)
    assert one.shape == two.shape == (6,)


def test_an_expression_of_data():
    with pm.Model() as model:
        data = pm.Data("X", X)
        mu = pmt.BART("mu", data * 2.0, leaf=LEAF, m=2)
        pm.set_data({"X": X[:6]})
        assert pm.draw(mu, random_seed=1).shape == (6,)
    assert (forest_of(model)[2] == 2 * X).all()


GAP = np.where(np.arange(X.size).reshape(X.shape) == 1, np.nan, X)
EXPRESSIONS = {
    "scaled": lambda data: (data - 5.0) / 2.0,
    "some columns": lambda data: data[:, :1],
}


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=list(EXPRESSIONS))
@pytest.mark.parametrize("front_end", [pmt.BART, pmt.SoftBART])
def test_an_expression_of_codes_or_missing_cells(expression, front_end):
    frame = pd.DataFrame({"a": X[:, 0], "b": ["u", "v"] * (len(X) // 2)})
    for table, words in ((GAP, "missing cells"), (frame, "levels")):
        with pm.Model():
            data = pmt.Data("X", table)
            with pytest.raises(
                TypeError, match=f"X is an expression of the data 'X', whose {words}"
            ):
                front_end("mu", expression(data), leaf=LEAF, m=2)
    with pm.Model() as model:
        data = pmt.Data("X", X)
        mu = front_end("mu", expression(data), leaf=LEAF, m=2)
        pmt.set_data({"X": X[:6]})
        assert pm.draw(mu, random_seed=1).shape == (6,)
        with pytest.raises(ValueError, match="X holds NaN"):
            pmt.set_data({"X": GAP})
    np.testing.assert_array_equal(training_rows(model["mu_forest"]), expression(X))


def test_the_training_rows_are_kept_when_the_callers_array_changes():
    mine = X.copy()
    with pm.Model() as model:
        mu = pmt.BART("mu", mine, Y, m=3, max_nodes=117)
        value = pm.draw(model["mu_forest"], random_seed=1)
        mine[:] = -5.0
        assert (forest_of(model)[2] == X).all()
        assert np.isfinite(model.compile_logp()({"mu_forest": value}))
        pmt.set_data({"mu_X": X[::-1]})
        assert (forest_of(model)[2] == X).all()
        assert pm.draw(mu).shape == (20,)
