"""Odd inputs of `Data`, `set_data`, `evaluate` and `with_columns`."""

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import scipy.sparse

import pymc_trees as pmt
from support.odd.table import FRAME, LEAF, Odd, X, Y, with_entry

MISSING = -(2.0**900)


def data(refused=None, holds=lambda v: True, X=X, name="X", **given):
    """A row about `Data`: its value."""

    def call():
        with pm.Model():
            return pmt.Data(name, X, **given).get_value()

    return Odd(call, refused, holds)


def new(value, refused=None, holds=lambda v: True, first=X, name="X", **given):
    """A row about `set_data` after a first value."""

    def call():
        with pm.Model() as model:
            pmt.Data("X", first)
            pmt.set_data({name: value}, **given)
            return model["X"].get_value()

    return Odd(call, refused, holds)


IDS = pd.DataFrame({"a": ["1", "2", "3"]})
CITY = pd.DataFrame({"a": ["x", "y", None]})
NUMBERS = pd.DataFrame({"a": [0.5, 1.5, 2.5]})


def codes(*wanted):
    """Whether the value is a column of these codes."""
    return lambda v: np.array_equal(v[:, 0], wanted)


DATA = {
    "vector": data("X", X=X[:, 0]),
    "scalar": data("X", X=1.0),
    "None": data("X", X=None),
    "text": data("X", X=np.array([["a"]])),
    "complex": data("X", X=X + 1j),
    "infinite": data("X", X=with_entry(X, np.inf)),
    "sparse": data(TypeError("X"), X=scipy.sparse.csr_array(X)),
    "lazy frame": data(X=pl.DataFrame({"a": [1, None]}).lazy(), holds=codes(1.0, MISSING)),
    "lazy frame of text": data("X", X=pl.DataFrame({"a": ["x"]}).lazy()),
    "lazy frame, infinite": data("X", X=pl.DataFrame({"a": [np.inf]}).lazy()),
    "lazy frame without columns": data("X", X=pl.DataFrame().lazy()),
    "dates": data("X", X=pd.DataFrame({"a": pd.date_range("2020-01-01", periods=3)})),
    "intervals": data("X", X=pd.DataFrame({"a": pd.interval_range(0, 3)})),
    "repeated names": data("X", X=pd.DataFrame(X, columns=["a", "a"])),
    "no columns": data("X", X=X[:, :0]),
    "split_rules a number": data(TypeError("split_rules"), split_rules=5),
    "split_rules unknown": data("split_rules", split_rules="sets"),
    "split_rules of no column": data("split_rules", X=FRAME, split_rules={"c": "subset"}),
    "levels missing everywhere": data(
        "X", X=pd.DataFrame({"a": pd.Series([None] * 3, dtype="string")})
    ),
    "dims one": data("dims", dims=("row",)),
    "masked": data(
        X=np.ma.masked_array([[1.0], [2.0]], [[False], [True]]), holds=codes(1.0, MISSING)
    ),
    "NaN": data(X=[[1.0], [np.nan]], holds=codes(1.0, MISSING)),
    "empty text is a level": data(X=pd.DataFrame({"a": ["", "x"]}), holds=codes(0.0, 1.0)),
    "categories never used": data(
        X=pd.DataFrame({"a": pd.Categorical(["y", "x"], ["w", "x", "y"])}), holds=codes(1.0, 0.0)
    ),
    "ordered categories": data(
        X=pd.DataFrame({"a": pd.Categorical(["lo", "hi"], ["lo", "hi"], ordered=True)}),
        holds=codes(0.0, 1.0),
    ),
    "nullable integers": data(
        X=pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}), holds=codes(1.0, MISSING)
    ),
    "nullable bools": data(
        X=pd.DataFrame({"a": pd.array([True, None], dtype="boolean")}),
        holds=codes(1.0, MISSING),
    ),
    "polars enum": data(
        X=pl.DataFrame({"a": pl.Series(["v", "u"], dtype=pl.Enum(["u", "v"]))}),
        holds=lambda v: sorted(v[:, 0]) == [0.0, 1.0],
    ),
    "big integers": data(X=np.array([[2**62], [1]]), holds=codes(2.0**62, 1.0)),
    "negative zero": data(X=[[-0.0], [0.0]]),
}

SET_DATA = {
    "another width": new(X[:, :1], "X"),
    "a vector": new(X[:, 0], "X"),
    "infinite": new(with_entry(X, np.inf), "X"),
    "text": new(np.array([["a", "b"]]), "X"),
    "sparse": new(scipy.sparse.csr_array(X), TypeError("X")),
    "lazy frame": new(
        pl.DataFrame({"b": [9.0], "a": [1.0]}).lazy(),
        holds=codes(1.0),
        first=pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}),
    ),
    "lazy frame of another width": new(pl.DataFrame({"a": [1.0]}).lazy(), "X"),
    "lazy frame that lacks a column": new(pl.DataFrame({"b": [1.0]}).lazy(), "X", first=NUMBERS),
    "lazy frame for levels": new(pl.DataFrame({"a": ["x"]}).lazy(), "X", first=CITY),
    "unknown variable": new(X, "Z", name="Z"),
    "text for numbers": new(CITY, "X", first=NUMBERS),
    "columns unknown": new(pd.DataFrame({"b": [1.0]}), "X", first=NUMBERS),
    "columns repeated": new(pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), "X", first=NUMBERS),
    "columns in another order": new(
        pd.DataFrame({"b": [7.0], "a": [5.0]}),
        holds=codes(5.0),
        first=pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}),
    ),
    "masked": new(np.ma.masked_array([[1.0, 2.0]], [[True, False]]), holds=codes(MISSING)),
    "NaN": new([[np.nan, 1.0]], holds=codes(MISSING)),
    "no rows": new(X[:0], holds=lambda v: v.shape == (0, 2)),
    "levels as they are": new(IDS, holds=codes(0, 1, 2), first=IDS),
    "levels in an object array": new(
        np.array([["1"], ["3"]], dtype=object), holds=codes(0, 2), first=IDS
    ),
    "levels in a text array": new(np.array([["2"], ["3"]]), holds=codes(1, 2), first=IDS),
    "ids as categories": new(IDS.astype("category"), holds=codes(0, 1, 2), first=IDS),
    "ids as integers": new(pd.DataFrame({"a": [1, 2, 3]}), holds=codes(0, 1, 2), first=IDS),
    "ids as floats": new(pd.DataFrame({"a": [1.0, 2.0]}), holds=codes(0, 1), first=IDS),
    "ids as floats that are none": new(
        pd.DataFrame({"a": [1.0, 2.5]}), holds=codes(0, MISSING), first=IDS
    ),
    "ids with blanks": new(pd.DataFrame({"a": ["1 ", "2"]}), holds=codes(MISSING, 1), first=IDS),
    "ids written in another way": new(
        pd.DataFrame({"a": [1, 2]}), "'a'", first=pd.DataFrame({"a": ["01", "2"]})
    ),
    "ids as categories of integers": new(
        pd.DataFrame({"a": pd.Categorical([1, 2])}), holds=codes(0, 1), first=IDS
    ),
    "one level unseen": new(
        pd.DataFrame({"a": ["x", "new"]}), holds=codes(0.0, MISSING), first=CITY
    ),
    "a level missing": new(pd.DataFrame({"a": ["y", None]}), holds=codes(1.0, MISSING), first=CITY),
}

BY_RULE = {"X": np.array([[3.0], [7.0], [9.0]]), "split_rules": "subset"}


def _levels_of_numbers(value):
    with pm.Model() as model:
        pmt.Data("X", **BY_RULE)
        pmt.set_data({"X": value})
        return model["X"].get_value()


SET_DATA |= {
    "integer levels as integers": Odd(lambda: _levels_of_numbers([[7], [3]]), holds=codes(1, 0)),
    "integer levels as text": Odd(
        lambda: _levels_of_numbers(pd.DataFrame({"a": ["7", "3"]})), holds=codes(1, 0)
    ),
}


def _evaluate(X_new, **given):
    with pm.Model():
        trees = pmt.Forest("trees", X, m=2, leaf=LEAF)
        return pm.draw(pmt.evaluate(trees, X_new, **given), random_seed=1)


def _evaluate_frame(X_new):
    with pm.Model():
        trees = pmt.Forest("trees", FRAME, m=2, leaf=LEAF)
        return pm.draw(pmt.evaluate(trees, X_new), random_seed=1)


def _of(variable):
    with pm.Model():
        return pmt.evaluate(variable(), X)


EVALUATE = {
    "not a variable": Odd(lambda: pmt.evaluate(3, X), TypeError("forest")),
    "a normal variable": Odd(lambda: _of(lambda: pm.Normal("z")), TypeError("forest")),
    "the function": Odd(lambda: _of(lambda: pmt.BART("mu", X, Y, m=2)), TypeError("forest")),
    "another width": Odd(lambda: _evaluate(X[:, :1]), "X"),
    "a vector": Odd(lambda: _evaluate(X[:, 0]), "X"),
    "text": Odd(lambda: _evaluate(np.array([["a", "b"]])), "X"),
    "infinite": Odd(lambda: _evaluate(with_entry(X, np.inf)), "X"),
    "sparse": Odd(lambda: _evaluate(scipy.sparse.csr_array(X)), TypeError("X")),
    "None": Odd(lambda: _evaluate(None), "X"),
    "NaN": Odd(lambda: _evaluate(with_entry(X, np.nan)), holds=lambda f: np.isfinite(f).all()),
    "masked": Odd(
        lambda: _evaluate(np.ma.masked_array(X, X > 0.5)), holds=lambda f: np.isfinite(f).all()
    ),
    "no rows": Odd(lambda: _evaluate(X[:0]), holds=lambda f: f.shape == (0,)),
    "one row": Odd(lambda: _evaluate(X[:1]), holds=lambda f: f.shape == (1,)),
    "far outside": Odd(lambda: _evaluate(X * 1e300), holds=lambda f: np.isfinite(f).all()),
    "levels in another order of columns": Odd(
        lambda: _evaluate_frame(FRAME[["b", "a"]]), holds=lambda f: f.shape == (20,)
    ),
    "a frame that lacks a column": Odd(lambda: _evaluate_frame(FRAME[["a"]]), "X"),
}


def columns(refused=None, holds=lambda f: np.isfinite(f).all(), X=X, cuts=None, **given):
    """A row about `with_columns`: the prior of a forest."""

    def call():
        with pm.Model():
            z = pm.Normal("z", 0, 1, shape=len(Y))
            made = {"z": z} | {k: v() if callable(v) else v for k, v in given.items()}
            f = pmt.BART("f", pmt.with_columns(X, cuts=cuts, **made), leaf=LEAF, m=2)
            return pm.draw(f, random_seed=1)

    return Odd(call, refused, holds)


def _outside():
    return pmt.with_columns(X, z=pm.Normal.dist(0, 1, shape=len(Y)))


WITH_COLUMNS = {
    "no column": Odd(lambda: _with_nothing(), "with_columns"),
    "no model": Odd(_outside, TypeError("model")),
    "a column of numbers": columns(TypeError("with_columns"), u=Y),
    "a column that is a number": columns(TypeError("with_columns"), u=3.0),
    "a column of no model": columns(
        TypeError("with_columns"), u=lambda: pm.Normal.dist(0, 1, shape=20)
    ),
    "a matrix": columns(TypeError("with_columns"), u=lambda: pm.Normal("u", 0, 1, shape=(20, 2))),
    "counts": columns(TypeError("with_columns"), u=lambda: pm.Poisson("u", 1, shape=20)),
    "another length": columns("with_columns", u=lambda: pm.Normal("u", 0, 1, shape=7)),
    "an observed one": columns(
        TypeError("with_columns"), u=lambda: pm.Normal("u", 0, 1, observed=Y)
    ),
    "a column of X": columns("with_columns", x0=lambda: pm.Normal("u", 0, 1, shape=20)),
    "a column of a frame": columns("with_columns", X=FRAME, a=lambda: pm.Normal("a", shape=20)),
    "a frame": columns(X=FRAME),
    "a list": columns("X", X=[1, 2, 3]),
    "no rows": columns("X", X=X[:0]),
    "infinite": columns("X", X=with_entry(X, np.inf)),
    "NaN": columns(X=with_entry(X, np.nan)),
    "cuts that are no dict": columns("cuts", cuts=[1.0]),
    "cuts of another column": columns("cuts", cuts={"x0": [0.5]}),
    "cuts in no order": columns("cuts", cuts={"z": [1.0, 0.0]}),
    "cuts that are text": columns("cuts", cuts={"z": "often"}),
    "cuts infinite": columns("cuts", cuts={"z": [0.0, np.inf]}),
    "no cuts": columns("cuts", cuts={"z": []}),
    "one cut": columns(cuts={"z": [0.0]}),
    "an infinite prior": columns("with_columns", u=lambda: pm.Pareto("u", 0.005, 1.0, shape=20)),
}


def _with_nothing():
    with pm.Model():
        return pmt.with_columns(X)
