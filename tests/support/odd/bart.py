"""Odd inputs of the hard forests' front-ends: `BART`, `DecisionTree`, `Forest`."""

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
MASKED = np.ma.masked_array(X, X > 0.9)


def bart(said=None, holds=finite, **given):
    """A row about `BART`."""
    return Odd(lambda: declare(pmt.BART, **{"m": 3, **given}), said, holds)


def tree(said=None, holds=finite, **given):
    """A row about `DecisionTree`."""
    return Odd(lambda: declare(pmt.DecisionTree, **given), said, holds)


def forest(said=None, holds=finite, **given):
    """A row about `Forest`."""

    def call():
        with pm.Model():
            return pmt.Forest("trees", **{"X": X, "leaf": LEAF, "m": 3, **given})

    return Odd(call, said, holds)


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
    "X infinite": bart(r"X .*infinite.*columns \[1\].*remove", X=with_entry(X, np.inf)),
    "X infinite in a frame": bart(
        r"X .*infinite.*'b'.*remove", X=pd.DataFrame(with_entry(X, -np.inf), columns=["a", "b"])
    ),
    "X dates": bart(r"X .*not numeric.*'b'.*Encode", X=DATES),
    "X datetime array": bart(r"X .*numbers.*dates", X=np.full((20, 1), np.datetime64("2020"))),
    "X durations": bart(r"X .*numbers", X=np.full((20, 1), np.timedelta64(1, "D"))),
    "X intervals": bart(r"X .*'b'", X=SPANS),
    "X lists in polars": bart(r"X .*'b'", X=LISTS),
    "X lazy frame of text": bart(r"X .*numbers.*'u'", X=pl.DataFrame({"a": ["u"] * 20}).lazy()),
    "X sparse": bart(r"X .*toarray", X=scipy.sparse.csr_array(X)),
    "X sparse matrix": bart(r"X .*toarray", X=scipy.sparse.csc_matrix(X)),
    "X text array": bart(r"X .*numbers.*frame", X=np.array([["a", "b"]] * 20)),
    "X bytes": bart(r"X .*numbers", X=np.array([[b"a", b"b"]] * 20)),
    "X objects": bart(r"X .*numbers.*frame", X=np.array([[1, "b"]] * 20, dtype=object)),
    "X mixed column": bart(r"X .*'b'.*Encode", X=FRAME.astype({"b": object}).replace("u", 1.5)),
    "X levels": bart(r"X.*'a'.*51 levels.*50.*merge", X=LEVELS, Y=None, leaf=LEAF),
    "X levels by rule": bart(
        r"X.*column 0.*51 levels.*50.*merge",
        X=np.arange(51.0)[:, None],
        Y=None,
        leaf=LEAF,
        split_rules="subset",
    ),
    "X nothing but missing": bart(r"X.*'b'.*missing in every row.*leave", X=BLANK),
    "X complex": bart(r"X .*numbers", X=X + 1j),
    "X vector": bart(r"X .*two-dimensional.*reshape\(-1, 1\)", X=X[:, 0]),
    "X series": bart(r"X .*two-dimensional", X=pd.Series(X[:, 0])),
    "X three dimensions": bart(r"X .*two-dimensional", X=X[None]),
    "X scalar": bart(r"X .*two-dimensional", X=3.0),
    "X None": bart(r"X ", X=None),
    "X text": bart(r"X .*numbers", X="data.csv"),
    "X dict": bart(r"X ", X={"a": X[:, 0]}),
    "X ragged": bart(r"X .*numbers", X=[[1.0, 2.0], [3.0]]),
    "X no rows": bart(r"X .*no rows.*at least one", X=X[:0], Y=None, leaf=LEAF),
    "X no columns": bart(r"X .*no columns.*at least one", X=X[:, :0]),
    "X too wide": bart(r"X spans.*\[0, 1\].*rescale", X=np.where(X > 0.5, 1.7e308, -1.7e308)),
    "X repeated names": bart(
        r"X .*repeated column names.*rename", X=pd.DataFrame(X, columns=["a", "a"])
    ),
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
    "Y NaN": bart(r"Y .*NaN.*leaf=", Y=with_entry(Y, np.nan)),
    "Y infinite": bart(r"Y .*infinite.*leaf=", Y=with_entry(Y, -np.inf)),
    "Y text": bart(r"Y .*numbers", Y=["a"] * 20),
    "Y numeric text": bart(r"Y .*numbers", Y=[str(v) for v in Y]),
    "Y complex": bart(r"Y .*numbers", Y=Y + 1j),
    "Y dates": bart(r"Y .*numbers", Y=np.arange("2020-01-01", "2020-01-21", dtype="M8[D]")),
    "Y durations": bart(r"Y .*numbers", Y=np.arange(20).astype("m8[s]")),
    "Y masked": bart(r"Y .*(mask|NaN)", Y=np.ma.masked_array(Y, Y > 2)),
    "Y short": bart(r"Y .*\(19,\).*20 rows", Y=Y[:-1]),
    "Y matrix": bart(r"Y .*\(20, 2\).*20 rows", Y=np.ones((20, 2))),
    "Y scalar": bart(r"Y .*20 rows", Y=3.0),
    "Y empty": bart(r"no rows", X=X[:0], Y=Y[:0]),
    "Y constant": bart(r"Y .*one value.*leaf=", Y=np.ones(20)),
    "Y None": bart(r"Y=None.*leaf=", Y=None),
    "Y bools": bart(Y=Y > 2),
    "Y a column": bart(Y=Y[:, None]),
    "Y a series": bart(Y=pd.Series(Y)),
    "Y masked nowhere": bart(Y=np.ma.masked_array(Y, False)),
    "Y integers": bart(Y=Y.round().astype(int)),
    "m zero": bart(r"m=0.*at least 1", m=0),
    "m negative": bart(r"m=-2.*at least 1", m=-2),
    "m fraction": bart(r"m=2.5.*whole number", m=2.5),
    "m whole float": bart(r"m=3.0.*whole number", m=3.0),
    "m bool": bart(r"m=True.*whole number", m=True),
    "m None": bart(r"m=None.*whole number", m=None),
    "m text": bart(r"m='3'.*whole number", m="3"),
    "m infinite": bart(r"m=inf.*whole number", m=np.inf),
    "m of numpy": bart(m=np.int32(3)),
    "alpha zero": bart(r"alpha=0.0.*\(0, 1\)", alpha=0.0),
    "alpha one": bart(r"alpha=1.0.*\(0, 1\)", alpha=1.0),
    "alpha large": bart(r"alpha=1.2.*\(0, 1\)", alpha=1.2),
    "alpha negative": bart(r"alpha=-0.1.*\(0, 1\)", alpha=-0.1),
    "alpha NaN": bart(r"alpha=nan", alpha=np.nan),
    "alpha text": bart(r"alpha='big'.*number", alpha="big"),
    "alpha vector": bart(r"alpha=.*number", alpha=np.ones(2) / 2),
    "alpha bool": bart(r"alpha=True", alpha=True),
    "alpha complex": bart(r"alpha=.*number", alpha=0.5 + 0j),
    "beta negative": bart(r"beta=-1.0.*must be at least 0", beta=-1.0),
    "beta infinite": bart(r"beta=inf", beta=np.inf),
    "beta None": bart(r"beta=None.*number", beta=None),
    "beta bool": bart(r"beta=False", beta=False),
    "beta huge": bart(beta=1e300),
    "leaf a number": bart(r"leaf=0.3.*NormalLeaf", leaf=0.3),
    "leaf a class": bart(r"leaf is the class.*instance", leaf=pmt.NormalLeaf),
    "leaf of a single tree": bart(r"m=50.*DecisionTree", leaf=pmt.DirichletLeaf(1.0, 2), m=50),
    "leaf normal-gamma": bart(r"m=3.*DecisionTree", leaf=pmt.NormalGammaLeaf()),
    "split_prior short": bart(r"split_prior.*\(1,\).*2 columns", split_prior=[1.0]),
    "split_prior negative": bart(r"split_prior.*at least 0", split_prior=[1.0, -1]),
    "split_prior zeros": bart(r"split_prior.*not all 0", split_prior=[0.0, 0]),
    "split_prior NaN": bart(r"split_prior.*finite", split_prior=[np.nan, 1]),
    "split_prior text": bart(r"split_prior", split_prior=["a", "b"]),
    "split_prior a number": bart(r"split_prior", split_prior=1.0),
    "split_prior a matrix": bart(r"split_prior", split_prior=np.ones((2, 2))),
    "split_prior empty dict": bart(split_prior={}),
    "split_prior by name of no frame": bart(r"split_prior .*'a'.*\[0, 1\]", split_prior={"a": 2.0}),
    "split_prior by number": bart(split_prior={1: 2.0}),
    "split_prior unknown": bart(r"split_prior .*'c'.*'a', 'b'", X=FRAME, split_prior={"c": 2.0}),
    "split_prior constant zeros": bart(r"split_prior.*not all 0", split_prior=pt.zeros(2)),
    "split_prior huge": bart(split_prior=[1e308] * 2),
    "split_prior tiny": bart(split_prior=[1e-308] * 2),
    "split_prior one column": bart(split_prior=[0, 1]),
    "split_rules unknown": bart(r"split_rules.*'set'.*'subset'", split_rules=["continuous", "set"]),
    "split_rules of no frame": bart(r"split_rules .*'a'.*\[0, 1\]", split_rules={"a": "subset"}),
    "split_rules unknown column": bart(
        r"split_rules .*'c'.*'a', 'b'", X=FRAME, split_rules={"c": "subset"}
    ),
    "split_rules short": bart(r"split_rules has 1.*2 columns", split_rules=["continuous"]),
    "split_rules a number": bart(r"split_rules=5", split_rules=5),
    "split_rules None": bart(split_rules=None),
    "n_cuts zero": bart(r"n_cuts=0.*at least 1", n_cuts=0),
    "n_cuts fraction": bart(r"n_cuts=2.5.*whole", n_cuts=2.5),
    "n_cuts bool": bart(r"n_cuts=True.*whole", n_cuts=True),
    "n_cuts too many": bart(r"n_cuts=65536.*65,53", n_cuts=65_536),
    "n_cuts text": bart(r"n_cuts='ten'.*whole", n_cuts="ten"),
    "n_cuts one": bart(n_cuts=1),
    "n_cuts more than values": bart(n_cuts=60_000),
    "shape": bart(r"shape=\(2, 19\).*\(K, n\)", shape=(2, 19)),
    "shape of words": bart(r"shape='two'.*\(K, n\)", shape="two"),
    "shape fraction": bart(r"shape=.*whole", shape=(2.7, 20)),
    "shape zero": bart(r"shape=.*\(K, n\)", shape=(0, 20)),
    "shape bool": bart(r"shape=.*\(K, n\)", shape=(True, 20)),
    "shape three": bart(r"shape=.*\(K, n\)", shape=(1, 2, 20)),
    "shape of one output": bart(shape=(20,)),
    "leaves of outputs": bart(
        r"leaf: 3 values for 2 outputs",
        shape=(2, 20),
        leaf=pmt.NormalLeaf(0.0, [1.0, 2.0, 3.0]),
    ),
    "leaves of one output": bart(
        r"leaf.*scalar.*shape=\(K, n\)", leaf=pmt.NormalLeaf(0.0, [1.0, 2.0])
    ),
    "classes of outputs": bart(
        r"several outputs.*NormalLeaf", shape=(2, 20), leaf=pmt.DirichletLeaf(1.0, 2), m=1
    ),
    "dims unknown": bart(r"the model has no dimension 'a'", dims=("a", "b")),
    "response": bart(r"response='cubic'.*'constant'", response="cubic"),
    "monotone a number": bart(r"monotone=1: must be a dict", monotone=1),
    "monotone a list": bart(r"monotone=\[1, -1\]: must be a dict", monotone=[1, -1]),
    "monotone two": bart(r"direction of 0 is 2; it must be 1", monotone={0: 2}),
    "monotone True": bart(r"direction of 0 is True", monotone={0: True}),
    "monotone NaN": bart(r"direction of 0 is nan", monotone={0: np.nan}),
    "monotone unknown": bart(
        r"monotone: X has no column 'c'; .*'a', 'b'", X=FRAME, monotone={"c": 1}
    ),
    "monotone beyond": bart(r"monotone: X has no column 2", monotone={2: 1}),
    "monotone and lines": bart(
        r"monotone needs.*leave monotone out", monotone={0: 1}, response="linear"
    ),
    "monotone and shared trees": bart(
        r"monotone: .*separate_trees=True", monotone={0: 1}, shape=(2, 20), separate_trees=False
    ),
    "monotone empty": bart(monotone={}),
    "monotone": bart(monotone={0: 1, 1: -1}),
    "monotone outputs": bart(monotone={0: 1}, shape=(2, 20)),
    "tree_prior text": bart(r"tree_prior.*MondrianPrior", tree_prior="mondrian"),
    "tree_prior class": bart(r"tree_prior is the class", tree_prior=pmt.MondrianPrior),
    "tree_prior and alpha": bart(
        r"alpha and beta.*leave them out", tree_prior=pmt.MondrianPrior(1.0), alpha=0.5
    ),
    "tree_prior and weights": bart(
        r"split_prior.*Leave it out", tree_prior=pmt.MondrianPrior(1.0), split_prior=[1, 2]
    ),
    "tree_prior and grid": bart(
        r"n_cuts.*Leave it out", tree_prior=pmt.MondrianPrior(1.0), n_cuts=3
    ),
    "tree_prior and levels": bart(
        r"tree_prior.*levels.*Encode", tree_prior=pmt.MondrianPrior(1.0), X=FRAME
    ),
    "max_nodes small": bart(r"max_nodes=49.*at least 50, one node a tree", m=50, max_nodes=49),
    "max_nodes fraction": bart(r"max_nodes=100.5.*whole number", max_nodes=100.5),
    "max_nodes bool": bart(r"max_nodes=True.*whole number", max_nodes=True, m=1),
    "max_nodes text": bart(r"max_nodes='big'.*whole number", max_nodes="big"),
    "max_nodes as many as trees": bart(max_nodes=3, holds=lambda mu: mu.ndim == 1),
    "sizes beyond memory": bart(r"(m=|max_nodes).*bytes|[GTP]B", m=10**12),
    "a name in use": Odd(lambda: _in_use(), r"mu"),
    "a failed declaration leaves nothing": Odd(_twice, holds=lambda left: left == []),
    "outside a model": Odd(lambda: pmt.BART("mu", X, Y), "[Mm]odel"),
    "no such argument": bart(r"tree", trees=3),
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
    "random weights of the wrong length": Odd(_wrong_length, r"split_prior.*2 columns"),
    "random inputs": Odd(lambda: _random_inputs(), r"X depends on a random.*must be data"),
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
    "no m": tree(r"m", m=3),
    "alpha zero": tree(r"alpha=0.*\(0, 1\)", alpha=0),
    "beta text": tree(r"beta='x'.*number", beta="x"),
    "Y dates": tree(r"Y .*numbers", Y=np.arange("2020-01-01", "2020-01-21", dtype="M8[D]")),
    "Y masked": tree(r"Y .*(mask|NaN)", Y=np.ma.masked_array(Y, Y > 2)),
    "leaf text": tree(r"leaf='normal'.*NormalLeaf", leaf="normal"),
    "shape": tree(r"shape=.*\(K, n\)", shape=(2, 19)),
    "shape with classes": tree(
        r"several outputs.*NormalLeaf", shape=(2, 20), leaf=pmt.DirichletLeaf(1.0, 2)
    ),
    "response": tree(r"response='cubic'.*'constant'", response="cubic"),
    "max_nodes zero": tree(r"max_nodes=0.*at least 1", max_nodes=0),
    "separate trees": tree(r"separate_trees", separate_trees=True),
    "classes of one row": tree(leaf=pmt.DirichletLeaf(1.0, 2), X=X[:1], Y=None),
    "one column of one value": tree(X=np.ones((20, 1))),
    "dims too many": tree(r"[Dd]im", dims=("a", "b", "c")),
    "X sparse": tree(r"X .*toarray", X=scipy.sparse.csr_array(X)),
}

FOREST = {
    "leaf left out": forest(r"leaf=None.*NormalLeaf", leaf=None),
    "shape": forest(r"shape.*leave shape out", shape=(3,)),
    "unknown argument": forest(r"unknown arguments.*'Y'", Y=Y),
    "observed": forest(r"observed|encoding|forest", observed=np.zeros(3)),
    "m zero": forest(r"m=0.*at least 1", m=0),
    "X None": forest(r"X ", X=None),
    "X text": forest(r"X ", X="X"),
    "max_nodes negative": forest(r"max_nodes=-1.*whole number", max_nodes=-1),
    "model data with NaN": Odd(lambda: _model_data("X", with_entry(X, np.nan)), r"(?i)nan"),
    "model data of levels that are no codes": Odd(
        lambda: _model_data("X", X * 3, split_rules="subset"),
        r"split_rules: column 0.*pymc_trees.Data",
    ),
    "model data of integers": Odd(lambda: _model_data("X", (9 * X).astype(int)), holds=finite),
    "an expression of data": Odd(lambda: _expression(), holds=finite),
}


def _expression():
    with pm.Model():
        return pmt.BART("mu", pt.log1p(pm.Data("X", X)), Y, m=3)
