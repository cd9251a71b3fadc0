"""Odd inputs of the hard forests' front-ends: `BART`, `DecisionTree`, `Forest`."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytensor.tensor as pt
import scipy.sparse

import pymc_trees as pmt
from support.odd.table import FRAME, LEAF, Odd, X, Y, declare, finite, with_entry

DATES = pd.DataFrame({"a": X[:, 0], "b": pd.date_range("2020-01-01", periods=20)})
LEVELS = pd.DataFrame({"a": [f"level {k}" for k in range(51)]})
BLANK = pd.DataFrame({"a": X[:, 0], "b": pd.Series([None] * 20, dtype="string")})
SPANS = pd.DataFrame({"a": X[:, 0], "b": pd.interval_range(0, 20)})
LISTS = pl.DataFrame({"a": X[:, 0], "b": [[1, 2]] * 20})
STRUCTS = pl.DataFrame({"a": X[:, 0], "b": [{"u": k} for k in range(20)]})
TIMES = {
    "dates": [datetime.date(2020, 1, 1)] * 20,
    "datetimes": [datetime.datetime(2020, 1, 1)] * 20,
    "durations": [datetime.timedelta(days=1)] * 20,
    "times": [datetime.time(12)] * 20,
}
MASKED = np.ma.masked_array(X, X > 0.9)


def bart(refused=None, holds=finite, **given):
    """A row about `BART`."""
    return Odd(lambda: declare(pmt.BART, **{"m": 3, **given}), refused, holds)


def tree(refused=None, holds=finite, **given):
    """A row about `DecisionTree`."""
    return Odd(lambda: declare(pmt.DecisionTree, **given), refused, holds)


def forest(refused=None, holds=finite, **given):
    """A row about `Forest`."""

    def call():
        with pm.Model():
            return pmt.Forest("trees", **{"X": X, "leaf": LEAF, "m": 3, **given})

    return Odd(call, refused, holds)


def _masked():
    with pm.Model() as model:
        pmt.BART("mu", MASKED, Y, m=3)
    return model["mu_X"].get_value() == -(2.0**900)


def _twice():
    """A declaration that failed, and the same mended."""
    with pm.Model() as model:
        try:
            pmt.BART("mu", X, Y, m=3, alpha=7)
        except ValueError:
            pass
        left = list(model.named_vars)
        pmt.BART("mu", X, Y, m=3)
    return left


BART = {
    "X infinite": bart("X", X=with_entry(X, np.inf)),
    "X infinite in a frame": bart("X", X=pd.DataFrame(with_entry(X, -np.inf), columns=["a", "b"])),
    "X dates": bart("X", X=DATES),
    "X datetime array": bart("X", X=np.full((20, 1), np.datetime64("2020"))),
    "X durations": bart("X", X=np.full((20, 1), np.timedelta64(1, "D"))),
    "X intervals": bart("X", X=SPANS),
    "X lists in polars": bart("X", X=LISTS),
    "X structs in polars": bart("X", X=STRUCTS),
    **{
        f"X lazy frame with {name}": bart(
            "'when'", X=pl.DataFrame({"when": one, "b": X[:, 0]}).lazy()
        )
        for name, one in TIMES.items()
    },
    "X lazy frame of text": bart("X", X=pl.DataFrame({"a": ["u"] * 20}).lazy()),
    "X sparse": bart(TypeError("X"), X=scipy.sparse.csr_array(X)),
    "X sparse matrix": bart(TypeError("X"), X=scipy.sparse.csc_matrix(X)),
    "X text array": bart("X", X=np.array([["a", "b"]] * 20)),
    "X bytes": bart("X", X=np.array([[b"a", b"b"]] * 20)),
    "X objects": bart("X", X=np.array([[1, "b"]] * 20, dtype=object)),
    "X mixed column": bart("X", X=FRAME.astype({"b": object}).replace("u", 1.5)),
    "X levels": bart("X", X=LEVELS, Y=None, leaf=LEAF),
    "X levels by rule": bart(
        "X",
        X=np.arange(51.0)[:, None],
        Y=None,
        leaf=LEAF,
        split_rules="subset",
    ),
    "X nothing but missing": bart("X", X=BLANK),
    "X complex": bart("X", X=X + 1j),
    "X vector": bart("X", X=X[:, 0]),
    "X series": bart("X", X=pd.Series(X[:, 0])),
    "X three dimensions": bart("X", X=X[None]),
    "X scalar": bart("X", X=3.0),
    "X None": bart("X", X=None),
    "X text": bart("X", X="data.csv"),
    "X dict": bart("X", X={"a": X[:, 0]}),
    "X ragged": bart("X", X=[[1.0, 2.0], [3.0]]),
    "X no rows": bart("X", X=X[:0], Y=None, leaf=LEAF),
    "X no columns": bart("X", X=X[:, :0]),
    "X too wide": bart("X", X=np.where(X > 0.5, 1.7e308, -1.7e308)),
    "X repeated names": bart("X", X=pd.DataFrame(X, columns=["a", "a"])),
    "X of lists": bart(X=X.tolist()),
    "X bools": bart(X=X > 0.5),
    "X of small integers": bart(X=(9 * X).astype(np.int8)),
    "X single precision": bart(X=X.astype(np.float32)),
    "X column-major": bart(X=np.asfortranarray(X)),
    "X read-only": bart(X=np.broadcast_to(X[:1], (20, 2))),
    "X reversed view": bart(X=X[::-1, ::-1]),
    "X NaN": bart(X=with_entry(X, np.nan)),
    "X all missing in a column": bart(X=np.column_stack([X[:, 0], np.full(20, np.nan)])),
    "X masked": Odd(_masked, holds=lambda m: np.array_equal(m, np.ma.getmaskarray(MASKED))),
    "X one constant column": bart(X=np.ones((20, 1))),
    "X at the largest floats": bart(X=X * 1e308),
    "X denormal": bart(X=X * 1e-310),
    "X one row": bart(X=X[:1], Y=None, leaf=LEAF),
    "X a frame with levels": bart(X=FRAME),
    "X a polars frame": bart(X=pl.DataFrame({"a": X[:, 0], "b": ["u", None] * 10})),
    "Y NaN": bart("Y", Y=with_entry(Y, np.nan)),
    "Y infinite": bart("Y", Y=with_entry(Y, -np.inf)),
    "Y text": bart("Y", Y=["a"] * 20),
    "Y numeric text": bart("Y", Y=[str(v) for v in Y]),
    "Y complex": bart("Y", Y=Y + 1j),
    "Y dates": bart("Y", Y=np.arange("2020-01-01", "2020-01-21", dtype="M8[D]")),
    "Y durations": bart("Y", Y=np.arange(20).astype("m8[s]")),
    "Y masked": bart("Y", Y=np.ma.masked_array(Y, Y > 2)),
    "Y short": bart("Y", Y=Y[:-1]),
    "Y matrix": bart("Y", Y=np.ones((20, 2))),
    "Y scalar": bart("Y", Y=3.0),
    "Y empty": bart("no", X=X[:0], Y=Y[:0]),
    "Y constant": bart("Y", Y=np.ones(20)),
    "Y None": bart("Y", Y=None),
    "Y bools": bart(Y=Y > 2),
    "Y a column": bart(Y=Y[:, None]),
    "Y a series": bart(Y=pd.Series(Y)),
    "Y masked nowhere": bart(Y=np.ma.masked_array(Y, False)),
    "Y integers": bart(Y=Y.round().astype(int)),
    "m zero": bart("m", m=0),
    "m negative": bart("m", m=-2),
    "m fraction": bart("m", m=2.5),
    "m whole float": bart("m", m=3.0),
    "m bool": bart("m", m=True),
    "m None": bart("m", m=None),
    "m text": bart("m", m="3"),
    "m infinite": bart("m", m=np.inf),
    "m of numpy": bart(m=np.int32(3)),
    "alpha zero": bart("alpha", alpha=0.0),
    "alpha one": bart("alpha", alpha=1.0),
    "alpha large": bart("alpha", alpha=1.2),
    "alpha negative": bart("alpha", alpha=-0.1),
    "alpha NaN": bart(TypeError("alpha"), alpha=np.nan),
    "alpha text": bart(TypeError("alpha"), alpha="big"),
    "alpha vector": bart(TypeError("alpha"), alpha=np.ones(2) / 2),
    "alpha bool": bart(TypeError("alpha"), alpha=True),
    "alpha complex": bart(TypeError("alpha"), alpha=0.5 + 0j),
    "beta negative": bart("beta", beta=-1.0),
    "beta infinite": bart(TypeError("beta"), beta=np.inf),
    "beta None": bart(TypeError("beta"), beta=None),
    "beta bool": bart(TypeError("beta"), beta=False),
    "beta huge": bart(beta=1e300),
    "leaf a number": bart(TypeError("leaf"), leaf=0.3),
    "leaf a class": bart(TypeError("leaf"), leaf=pmt.NormalLeaf),
    "leaf of a single tree": bart("m", leaf=pmt.DirichletLeaf(1.0, 2), m=50),
    "leaf normal-gamma": bart("m", leaf=pmt.NormalGammaLeaf()),
    "split_prior short": bart("split_prior", split_prior=[1.0]),
    "split_prior negative": bart("split_prior", split_prior=[1.0, -1]),
    "split_prior zeros": bart("split_prior", split_prior=[0.0, 0]),
    "split_prior NaN": bart("split_prior", split_prior=[np.nan, 1]),
    "split_prior text": bart("split_prior", split_prior=["a", "b"]),
    "split_prior a number": bart("split_prior", split_prior=1.0),
    "split_prior a matrix": bart("split_prior", split_prior=np.ones((2, 2))),
    "split_prior empty dict": bart(split_prior={}),
    "split_prior by name of no frame": bart("split_prior", split_prior={"a": 2.0}),
    "split_prior by number": bart(split_prior={1: 2.0}),
    "split_prior unknown": bart("split_prior", X=FRAME, split_prior={"c": 2.0}),
    "split_prior constant zeros": bart("split_prior", split_prior=pt.zeros(2)),
    "split_prior huge": bart(split_prior=[1e308] * 2),
    "split_prior tiny": bart(split_prior=[1e-308] * 2),
    "split_prior one column": bart(split_prior=[0, 1]),
    "split_rules unknown": bart("split_rules", split_rules=["continuous", "set"]),
    "split_rules of no frame": bart("split_rules", split_rules={"a": "subset"}),
    "split_rules unknown column": bart("split_rules", X=FRAME, split_rules={"c": "subset"}),
    "split_rules short": bart("split_rules", split_rules=["continuous"]),
    "split_rules a number": bart(TypeError("split_rules"), split_rules=5),
    "split_rules None": bart(split_rules=None),
    "n_cuts zero": bart("n_cuts", n_cuts=0),
    "n_cuts fraction": bart("n_cuts", n_cuts=2.5),
    "n_cuts bool": bart("n_cuts", n_cuts=True),
    "n_cuts too many": bart("n_cuts", n_cuts=65_536),
    "n_cuts text": bart("n_cuts", n_cuts="ten"),
    "n_cuts one": bart(n_cuts=1),
    "n_cuts more than values": bart(n_cuts=60_000),
    "shape": bart("shape", shape=(2, 19)),
    "shape of words": bart(TypeError("shape"), shape="two"),
    "shape fraction": bart(TypeError("shape"), shape=(2.7, 20)),
    "shape zero": bart("shape", shape=(0, 20)),
    "shape bool": bart(TypeError("shape"), shape=(True, 20)),
    "shape three": bart("shape", shape=(1, 2, 20)),
    "shape of one output": bart(shape=(20,)),
    "leaves of outputs": bart(
        "leaf",
        shape=(2, 20),
        leaf=pmt.NormalLeaf(0.0, [1.0, 2.0, 3.0]),
    ),
    "leaves of one output": bart("leaf", leaf=pmt.NormalLeaf(0.0, [1.0, 2.0])),
    "classes of outputs": bart(
        TypeError("leaf"), shape=(2, 20), leaf=pmt.DirichletLeaf(1.0, 2), m=1
    ),
    "dims unknown": bart("dims", dims=("a", "b")),
    "response": bart("response", response="cubic"),
    "monotone a number": bart(TypeError("monotone"), monotone=1),
    "monotone a list": bart(TypeError("monotone"), monotone=[1, -1]),
    "monotone two": bart("monotone", monotone={0: 2}),
    "monotone True": bart("monotone", monotone={0: True}),
    "monotone NaN": bart("monotone", monotone={0: np.nan}),
    "monotone unknown": bart("monotone", X=FRAME, monotone={"c": 1}),
    "monotone twice": bart("names a column twice", X=FRAME, monotone={"a": 1, 0: -1}),
    "monotone beyond": bart("monotone", monotone={2: 1}),
    "monotone and lines": bart("monotone", monotone={0: 1}, response="linear"),
    "monotone and shared trees": bart(
        NotImplementedError("monotone"), monotone={0: 1}, shape=(2, 20), separate_trees=False
    ),
    "monotone empty": bart(monotone={}),
    "monotone": bart(monotone={0: 1, 1: -1}),
    "monotone outputs": bart(monotone={0: 1}, shape=(2, 20)),
    "tree_prior text": bart(TypeError("tree_prior"), tree_prior="mondrian"),
    "tree_prior class": bart(TypeError("tree_prior"), tree_prior=pmt.MondrianPrior),
    "tree_prior and alpha": bart("tree_prior", tree_prior=pmt.MondrianPrior(1.0), alpha=0.5),
    "tree_prior and weights": bart(
        "split_prior", tree_prior=pmt.MondrianPrior(1.0), split_prior=[1, 2]
    ),
    "tree_prior and grid": bart("n_cuts", tree_prior=pmt.MondrianPrior(1.0), n_cuts=3),
    "tree_prior and levels": bart(
        NotImplementedError("tree_prior"), tree_prior=pmt.MondrianPrior(1.0), X=FRAME
    ),
    "max_nodes small": bart("max_nodes", m=50, max_nodes=49),
    "max_nodes fraction": bart("max_nodes", max_nodes=100.5),
    "max_nodes bool": bart("max_nodes", max_nodes=True, m=1),
    "max_nodes text": bart("max_nodes", max_nodes="big"),
    "max_nodes as many as trees": bart(max_nodes=3, holds=lambda mu: mu.ndim == 1),
    "sizes beyond memory": bart("max_nodes", m=10**12),
    "a name in use": Odd(lambda: _in_use(), "name"),
    "a failed declaration leaves nothing": Odd(_twice, holds=lambda left: left == []),
    "outside a model": Odd(lambda: pmt.BART("mu", X, Y), TypeError("model")),
    "no such argument": bart(TypeError("trees"), trees=3),
}


def _in_use():
    with pm.Model():
        pm.Normal("mu")
        return pmt.BART("mu", X, Y, m=3)


def _wrong_length():
    with pm.Model():
        return pmt.BART("mu", X, Y, split_prior=pm.Dirichlet("w", np.ones(3)))


def _random(name, make):
    def call():
        with pm.Model():
            vector = pm.Beta("vector", 1, 1, shape=(2, 2) if name == "split_prior" else 2)
            return pmt.BART("mu", X, Y, **{name: make(vector)})

    return Odd(call, name)


BART |= {
    "random weights of the wrong length": Odd(_wrong_length, "split_prior"),
    "random inputs": Odd(lambda: _random_inputs(), TypeError("X")),
    **{
        f"random vector for {name}": _random(name, lambda v: v)
        for name in ("alpha", "beta", "split_prior")
    },
    "random vector for the leaf": _random("leaf", lambda v: pmt.NormalLeaf(v, 1)),
}


def _random_inputs():
    with pm.Model():
        return pmt.BART("mu", pm.Normal("inputs", shape=(20, 2)), Y)


def _model_data(name, values, **given):
    with pm.Model():
        return pmt.BART("mu", pm.Data(name, values), Y, m=3, **given)


TREE = {
    "no m": tree(TypeError("m"), m=3),
    "alpha zero": tree("alpha", alpha=0),
    "beta text": tree(TypeError("beta"), beta="x"),
    "Y dates": tree("Y", Y=np.arange("2020-01-01", "2020-01-21", dtype="M8[D]")),
    "Y masked": tree("Y", Y=np.ma.masked_array(Y, Y > 2)),
    "leaf text": tree(TypeError("leaf"), leaf="normal"),
    "shape": tree("shape", shape=(2, 19)),
    "shape with classes": tree(TypeError("shape"), shape=(2, 20), leaf=pmt.DirichletLeaf(1.0, 2)),
    "response": tree("response", response="cubic"),
    "max_nodes zero": tree("max_nodes", max_nodes=0),
    "separate trees": tree(TypeError("separate_trees"), separate_trees=True),
    "classes of one row": tree(leaf=pmt.DirichletLeaf(1.0, 2), X=X[:1], Y=None),
    "one column of one value": tree(X=np.ones((20, 1))),
    "dims too many": tree("Dimension", dims=("a", "b", "c")),
    "X sparse": tree(TypeError("X"), X=scipy.sparse.csr_array(X)),
}

FOREST = {
    "leaf left out": forest(TypeError("leaf"), leaf=None),
    "shape": forest("shape", shape=(3,)),
    "unknown argument": forest(TypeError("'Y'"), Y=Y),
    "observed": forest("shape", observed=np.zeros(3)),
    "m zero": forest("m", m=0),
    "X None": forest("X", X=None),
    "X text": forest("X", X="X"),
    "max_nodes negative": forest("max_nodes", max_nodes=-1),
    "model data with NaN": Odd(
        lambda: _model_data("X", with_entry(X, np.nan)), NotImplementedError("observed")
    ),
    "model data of levels that are no codes": Odd(
        lambda: _model_data("X", X * 3, split_rules="subset"),
        "split_rules",
    ),
    "model data of integers": Odd(lambda: _model_data("X", (9 * X).astype(int)), holds=finite),
    "an expression of data": Odd(lambda: _expression(), holds=finite),
}


def _expression():
    with pm.Model():
        return pmt.BART("mu", pt.log1p(pm.Data("X", X)), Y, m=3)
