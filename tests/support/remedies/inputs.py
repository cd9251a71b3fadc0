"""Remedies of messages about the inputs of forests: `BART`, `Data`, `set_data`, `evaluate`."""

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import scipy.sparse

import pymc_trees as pmt
from support.odd import bart as odd
from support.odd import data as odd_data
from support.odd import soft as odd_soft
from support.odd import soft_sums as odd_sums
from support.odd.table import FRAME, LEAF, X, Y, with_entry
from support.remedies.table import bart, forest, remedy, soft_bart, soft_tree, tree

IDS = pd.DataFrame({"id": [f"customer {k}" for k in range(60)], "age": np.arange(60.0)})
OF_IDS = {"X": IDS, "Y": None, "leaf": LEAF}
LEVELS = pd.DataFrame({"a": ["1", "2", "3"] * 4})
NAMES = pd.DataFrame({"a": ["u", "v", "w"] * 4})


def setting(first, new, **given):
    """What sets other rows of a data variable, and tells its new value."""

    def call():
        with pm.Model() as model:
            pmt.Data("X", first, **given)
            pmt.set_data({"X": new})
            return model["X"].get_value() is not None

    return call


def _halved(expression):
    def call():
        with pm.Model():
            return pmt.BART("mu", expression(pmt.Data("X", with_entry(X, np.nan))), Y, m=3)

    return call


def data(X, **given):
    """What makes a data variable."""

    def call():
        with pm.Model():
            return pmt.Data("X", X, **given)

    return call


def _model_data(values, make=pm.Data, **given):
    def call():
        with pm.Model():
            return pmt.BART("mu", make("X", values), Y, m=3, **given)

    return call


def _of_integers(make, new):
    def call():
        with pm.Model() as model:
            make("X", (9 * X).astype(int))
            pmt.BART("mu", model["X"], Y, m=3)
            pmt.set_data({"X": new})
            return True

    return call


def _of_data(make, first):
    """Text for the rows of a data variable."""

    def call():
        with pm.Model() as model:
            pmt.BART("mu", make("X", first), Y, m=3)
            pmt.set_data({"X": FRAME[:3]})
            return len(model["X"].get_value()) == 3

    return call


def _evaluated(front_end, X_new, levels=False):
    def call():
        with pm.Model():
            if front_end is pmt.Forest:
                trees = pmt.Forest("trees", FRAME if levels else X, m=2, leaf=LEAF)
            else:
                front_end("f", X, Y)
                trees = pm.modelcontext(None)["f_forest"]
            rows = pm.Data("rows", X_new) if isinstance(X_new, np.ndarray) else X_new
            return np.isfinite(pm.draw(pmt.evaluate(trees, rows), random_seed=1)).all()

    return call


INPUTS = [
    remedy(
        "remove those rows before predicting, or put NaN for a missing cell",
        _evaluated(pmt.Forest, with_entry(X, np.inf)),
        _evaluated(pmt.Forest, X[:3]),
    ),
    remedy(
        "set new data with pymc_trees.set_data",
        _evaluated(pmt.Forest, X + 0.5, levels=True),
        setting(FRAME, FRAME[:3]),
    ),
    remedy(
        "Encode dates, intervals and other objects as numbers first, or convert them to",
        odd.BART["X dates"],
        bart(X=odd.DATES.astype({"b": "int64"})),
        bart(X=odd.DATES.astype({"b": "category"})),
    ),
    remedy(
        "columns, but the model was declared with",
        odd_data.SET_DATA["another width"],
        setting(X, X[:3]),
    ),
    remedy(
        "has repeated column names: rename them",
        odd.BART["X repeated names"],
        bart(X=pd.DataFrame(X, columns=["a", "b"])),
    ),
    remedy(
        "Give a frame with the columns of the training frame",
        odd_data.SET_DATA["columns unknown"],
        setting(odd_data.NUMBERS, odd_data.NUMBERS[:1]),
    ),
    remedy(
        "or declare the model with its levels, by a frame in pymc_trees.Data or BART",
        _of_data(pm.Data, X),
        _of_data(pmt.Data, FRAME),
        bart(X=FRAME),
    ),
    remedy(
        "For a single column use X.reshape(-1, 1)",
        odd.BART["X vector"],
        bart(X=X[:, 0].reshape(-1, 1)),
    ),
    remedy("has no columns: give at least one", odd.BART["X no columns"], bart(X=X[:, :1])),
    remedy(
        "merge rare levels, leave the column out or give it the weight 0 in split_prior",
        bart(**OF_IDS),
        bart(**OF_IDS | {"X": IDS.assign(id=IDS.id.where(IDS.index < 40, "other"))}),
        bart(**OF_IDS | {"X": IDS[["age"]]}),
        bart(**OF_IDS, split_prior={"id": 0}),
        tree(**OF_IDS, split_prior=[0.0, 1.0]),
        forest(X=IDS, split_prior={"id": 0.0}),
        lambda: _by_data({"id": 0}),
        bart(**OF_IDS | {"X": IDS.assign(id=np.arange(60))}),
    ),
    remedy(
        "is missing in every row: leave the column out",
        odd.BART["X nothing but missing"],
        bart(X=odd.BLANK[["a"]]),
    ),
    remedy(
        "which floats may round: convert the column to a category or text",
        data(pd.DataFrame({"a": [2**53, 2**53 + 2]}), split_rules="subset"),
        data(pd.DataFrame({"a": [2**53, 2**53 + 2]}).astype(str), split_rules="subset"),
        data(pd.DataFrame({"a": [2**53, 2**53 + 2]}).astype("category")),
    ),
    remedy(
        "convert the column to its type in training",
        odd_data.SET_DATA["ids written in another way"],
        setting(pd.DataFrame({"a": ["01", "2"]}), pd.DataFrame({"a": ["01"]})),
    ),
    remedy(
        "Give a frame, or an array of text or objects",
        setting(LEVELS, np.array([[1.0], [2.0]])),
        setting(LEVELS, LEVELS[:2]),
        setting(LEVELS, LEVELS.to_numpy()[:2]),
        setting(LEVELS, LEVELS.to_numpy().astype(object)[:2]),
    ),
    remedy(
        "Give a frame or an array of objects with the names of the levels, and NaN for a missing",
        setting(NAMES, np.array([[7.0]])),
        setting(NAMES, NAMES[:2]),
        setting(NAMES, np.array([["u"], [np.nan]], dtype=object)),
    ),
    remedy(
        "which holds no rows: give .collect()",
        bart(Y=pl.DataFrame({"y": Y}).lazy()),
        bart(Y=pl.DataFrame({"y": Y}).lazy().collect()),
    ),
    remedy(
        "is a sparse …: give ….toarray()",
        odd.BART["X sparse"],
        bart(X=scipy.sparse.csr_array(X).toarray()),
    ),
    remedy(
        "text can stay as it is in a pandas or polars frame",
        odd.BART["X text array"],
        bart(X=pd.DataFrame([["a", "b"]] * 20)),
        bart(X=pl.DataFrame({"a": ["a", "b"] * 10})),
        bart(X=np.array([[0.0, 1.0]] * 20)),
    ),
    remedy(
        "remove or impute those rows, or use NaN for a missing cell if the model takes these",
        odd.BART["X infinite"],
        bart(X=X[1:], Y=Y[1:]),
        bart(X=with_entry(X, np.nan)),
    ),
    remedy(
        "Make it with pymc_trees.Data, or give X itself to BART, which accepts any values",
        odd.FOREST["model data of levels that are no codes"],
        _model_data(X * 3, make=lambda name, x: pmt.Data(name, x, split_rules="subset")),
        bart(X=X * 3, split_rules="subset"),
    ),
    remedy(
        "split_rules=…: give one of …, one for each column, or a dict from column name to rule",
        odd.BART["split_rules a number"],
        bart(X=FRAME, split_rules="onehot"),
        bart(X=FRAME, split_rules=["continuous", "onehot"]),
        bart(X=FRAME, split_rules={"b": "onehot"}),
    ),
    remedy(
        "names the columns …, which X does not have: they are",
        odd.BART["split_rules of no frame"],
        bart(split_rules=["subset", "continuous"]),
    ),
    remedy(
        "names a column twice: give each once",
        bart(X=FRAME, split_rules={"b": "onehot", 1: "onehot"}),
        bart(X=FRAME, split_rules={"b": "onehot"}),
        bart(X=FRAME, split_rules={1: "onehot"}),
        bart(X=FRAME, split_prior={"a": 2.0, 1: 1.0}),
        bart(X=FRAME, monotone={0: 1}),
    ),
    remedy(
        "would become ordinary numbers: give the data themselves",
        _halved(lambda data: data / 2.0),
        _halved(lambda data: data),
    ),
    remedy(
        "is not a rule; choose from",
        odd.BART["split_rules unknown"],
        *(bart(split_rules=rule) for rule in ("continuous", "subset", "onehot")),
    ),
    remedy(
        "holds NaN or infinite values: remove or impute those rows",
        lambda: _soft_data(with_entry(X, np.nan)),
        lambda: _soft_data(X[1:]),
        lambda: _soft_data(np.nan_to_num(with_entry(X, np.nan))),
    ),
    remedy(
        "model data: make it with pymc_trees.Data",
        _of_integers(pm.Data, with_entry(X, np.nan)),
        _of_integers(pmt.Data, with_entry(X, np.nan)),
    ),
    remedy(
        "The inputs of a forest must be data: pass an array, a frame, pm.Data or an expression",
        odd.BART["random inputs"],
        bart(),
        bart(X=FRAME),
        _model_data(X),
        odd.FOREST["an expression of data"].call,
    ),
    remedy(
        "Encode them as numbers first, for example one 0/1 column per level",
        odd_soft.SOFT["X text"],
        soft_tree(X=pd.get_dummies(FRAME)),
        soft_bart(X=pd.get_dummies(FRAME)),
    ),
    remedy(
        "soft trees take finite numbers only: remove or impute those rows",
        odd_sums.SOFT_BART["X NaN"],
        soft_bart(X=X[1:], Y=Y[1:]),
        soft_bart(X=np.nan_to_num(with_entry(X, np.nan))),
    ),
    remedy(
        "give two names, for the rows and the columns",
        odd_data.DATA["dims one"],
        data(X, dims=("row", "column")),
    ),
    remedy(
        "X has another number of columns than the X the tree was declared with",
        lambda: _narrow(pmt.SoftDecisionTree, X[:, :1]),
        lambda: _narrow(pmt.SoftDecisionTree, X[:3]),
    ),
    remedy(
        "X has another number of columns than the X the forest was declared with",
        lambda: _narrow(pmt.SoftBART, X[:, :1]),
        lambda: _narrow(pmt.SoftBART, X[:3]),
    ),
    remedy(
        "soft trees take none. Remove or impute those rows before predicting",
        lambda: _narrow(pmt.SoftBART, with_entry(X, np.nan)),
        lambda: _narrow(pmt.SoftBART, X[:3]),
    ),
    remedy(
        "soft trees take none. Remove or impute those rows before predicting",
        lambda: _narrow(pmt.SoftDecisionTree, with_entry(X, np.nan)),
        lambda: _narrow(pmt.SoftDecisionTree, X[:3]),
    ),
    remedy("rescale them", odd.BART["X too wide"], bart(X=np.where(X > 0.5, 1.7, -1.7))),
]


def _by_data(split_prior):
    with pm.Model():
        return pmt.BART("mu", pmt.Data("X", IDS), m=3, leaf=LEAF, split_prior=split_prior)


def _soft_data(new):
    with pm.Model() as model:
        pmt.SoftBART("mu", X, Y, m=2)
        pmt.set_data({"mu_X": new})
        return len(model["mu_X"].get_value()) == len(new)


def _narrow(front_end, X_new):
    """A function at rows that nobody checked."""
    with pm.Model() as model:
        given = {"m": 2, "max_nodes": 80} if front_end is pmt.SoftBART else {}
        mu = front_end("mu", pm.Data("X", X), Y, leaf=LEAF, **given)
        model["X"].set_value(X_new)
        return np.isfinite(pm.draw(mu, random_seed=1)).all()
