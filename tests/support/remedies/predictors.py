"""Remedies of messages about predictors."""

import tempfile

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt

import pymc_trees as pmt
from pymc_trees import survival
from support import predictor_models as models
from support.odd import predictors as odd
from support.odd.predictors import asked, loaded, made, of_expressions, whole
from support.remedies.table import remedy

ROWS = models.new_array(3)
FINITE = models.new_array(3, missing=False)
BESIDE = {"X": ROWS, "exposure": np.ones(3), "group_of": np.zeros(3, dtype=int)}


def _other(mean=lambda f: f - f.mean(), likelihood=pm.Laplace, X=models.X, of=pmt.BART):
    with pm.Model() as model:
        f = of("f", pmt.Data("X", X), leaf=models.LEAF, **({"m": 3} if of is pmt.BART else {}))
        pm.Deterministic("other", mean(f))
        likelihood("y", f, 1.0, observed=models.Y, shape=f.shape)
    return models.drawn(model, None)


def _dates(convert):
    """Levels that are dates, or what is made of them."""
    dates = pd.Categorical(pd.Timestamp("2026-01-01") + pd.to_timedelta(models.GROUPS, "D"))
    X = pd.DataFrame({"day": dates if convert is None else pd.Series(dates).astype(convert)})
    return made(lambda: _other(lambda f: f, X=X))


def _saved_and_opened():
    case = odd.counts()
    with tempfile.TemporaryDirectory() as folder:
        return pmt.open(pmt.save(case.idata, f"{folder}/fit.nc"), case.model)


def _loaded(predictor):
    with tempfile.TemporaryDirectory() as folder:
        return pmt.load(predictor.save(f"{folder}/fit.pmt"))


def _mondrian():
    forest = pmt.MondrianForestRegressor(n_estimators=2, random_state=1, progressbar=False)
    return forest.fit(models.X[:, :1], models.Y).predictor()


def _classes():
    forest = pmt.MondrianForestClassifier(n_estimators=2, random_state=1, progressbar=False)
    return forest.fit(models.X[:, :1], models.GROUPS).predictor()


def _soft_tree():
    with pm.Model() as model:
        f = pmt.SoftDecisionTree("f", pmt.Data("X", models.X), models.Y)
        pm.Normal("y", f, 1.0, observed=models.Y, shape=f.shape)
    return models.drawn(model, FINITE)


PREDICTORS = [
    remedy(
        "cannot be carried to other rows without the model: …. Leave it out of var_names",
        made(_other, var_names="other"),
        made(_other, var_names="f"),
        lambda: pmt.predictions(_other().idata, _other().model, ROWS, var_name="f"),
    ),
    remedy(
        "its law at other rows is not known (…). Leave response out, and call function",
        made(_other, response="y"),
        lambda: made(_other)().function(ROWS, lambda f: f),
    ),
    remedy("is not observed: choose from", made(response="f"), made(response="y")),
    remedy(
        "is neither a function of rows nor in the draws: choose from",
        made(var_names="nothing"),
        made(var_names="f"),
        made(var_names=["f", "scale"]),
    ),
    remedy(
        "which a predictor cannot hold: convert the column to text or numbers",
        _dates(None),
        _dates(str),
    ),
    remedy(
        "has trees or leaves that a predictor cannot hold",
        made(_soft_tree),
        lambda: pmt.predictions(_soft_tree().idata, _soft_tree().model, FINITE),
    ),
    remedy(
        "X lacks …: give a dict with an entry for each of",
        odd.OF_PREDICTOR["data lacking"],
        asked("draws", by=of_expressions, rows=BESIDE),
    ),
    remedy(
        "which the model does not: give",
        odd.OF_PREDICTOR["data of no such name"],
        asked("draws", by=of_expressions, rows=BESIDE),
    ),
    remedy(
        "give numbers of shape",
        asked("draws", by=of_expressions, rows=BESIDE | {"exposure": np.ones((3, 1))}),
        asked("draws", by=of_expressions, rows=BESIDE),
    ),
    remedy(
        "which cannot hold what it is given: give whole, finite numbers",
        asked("draws", by=of_expressions, rows=BESIDE | {"group_of": np.full(3, 0.5)}),
        asked("draws", by=of_expressions, rows=BESIDE),
        asked("draws", by=of_expressions, rows=BESIDE | {"group_of": ["a", "b", "a"]}),
    ),
    remedy(
        "of a vector that has …: give numbers of groups that the model had",
        asked("draws", by=of_expressions, rows=BESIDE | {"group_of": np.full(3, 9)}),
        asked("draws", by=of_expressions, rows=BESIDE),
    ),
    remedy(
        "X: the new rows have different numbers",
        asked("draws", by=of_expressions, rows=BESIDE | {"exposure": np.ones(2)}),
        asked("draws", by=of_expressions, rows=BESIDE),
    ),
    remedy(
        "is no predictor that can be read: …. Copy the file again",
        lambda: loaded(whole()[:-1])(),
        lambda: loaded(whole())(),
    ),
    remedy(
        "holds no draws that can be read (…): give a file that pymc_trees.save wrote",
        odd.OPEN["no draws"],
        _saved_and_opened,
    ),
    remedy(
        "which has no classes: call predict or draws",
        odd.OF_PREDICTOR["classes of counts"],
        asked("predict"),
        asked("draws"),
    ),
    remedy(
        "func has the arguments …: choose from the functions",
        odd.OF_PREDICTOR["func of nothing"],
        asked("function", lambda f, s: f * s),
    ),
    remedy(
        "is no function of rows: choose from",
        odd.OF_PREDICTOR["draws of a parameter"],
        asked("draws", var_names="f"),
    ),
    remedy("of=…: choose from", odd.OF_PREDICTOR["of unknown"], asked("predict", of="f")),
    remedy(
        "a class is of the response. Leave of out, or kind",
        lambda: _classes().predict(models.X[:, :1], "class", of="p"),
        lambda: _classes().predict(models.X[:, :1], "class"),
        lambda: _classes().predict(models.X[:, :1], of="p"),
    ),
    remedy(
        "the law of the response is not known (…): call draws",
        lambda: made(_other)().sample_y(ROWS),
        lambda: made(_other)().draws(ROWS),
        lambda: made(_other)().function(ROWS, lambda f: f),
    ),
    remedy(
        "has …. Use save() and load() instead.",
        lambda: made(models.soft)().to_onnx(),
        lambda: _loaded(made(models.soft)()).predict(FINITE),
    ),
    remedy(
        "of which survival curves are not known here. Use survival.survival_function",
        lambda: odd.of_counts().survival(ROWS, [1.0]),
        lambda: survival.survival_function(odd.times().idata, odd.times().model, ROWS, [0.5]),
    ),
    remedy(
        "Give grid=, the values of the column of times, which is the first",
        lambda: odd.of_hazards().survival(ROWS[:, 1:]),
        lambda: odd.of_hazards().survival(ROWS[:, 1:], grid=[1.0, 2.0]),
    ),
    remedy(
        "times=None: give the times of the curves",
        odd.OF_TIMES["no times"],
        lambda: odd.of_times().survival(ROWS, [0.5, 1.0]),
    ),
    remedy(
        "…: give at least one, in increasing order",
        odd.OF_TIMES["times that go back"],
        lambda: odd.of_times().survival(ROWS, [0.5, 1.0]),
    ),
    remedy(
        "X has missing cells, which Mondrian forests do not take: impute them first",
        lambda: _mondrian().predict([[None]]),
        lambda: _mondrian().predict([[0.5]]),
    ),
    remedy(
        "has no new observations. Give of='mean', or a function among",
        odd.ELSEWHERE["a new observation"],
        lambda: odd.of_counts().to_onnx(of="mean"),
        lambda: odd.of_counts().to_onnx(of="f"),
    ),
    remedy(
        "for which there is no operator. Give of=, a function",
        lambda: made(lambda: _other(pt.arctan))().to_onnx(of="other"),
        lambda: made(lambda: _other(pt.arctan))().to_onnx(of="f"),
    ),
    remedy(
        "which databases lack. Give of=, a function among",
        lambda: made(lambda: _other(pt.erf))().to_sql("t", of="other", columns=list("abc")),
        lambda: made(lambda: _other(pt.erf))().to_sql("t", of="f", columns=list("abc")),
        lambda: made(lambda: _other(pt.erf))().to_onnx(of="other"),
    ),
    remedy(
        "the query has more than max_bytes=…. Give draws=",
        odd.ELSEWHERE["a long query"],
        lambda: odd.of_counts().to_sql("t", columns=list("abc"), draws=1),
        lambda: odd.of_counts().to_sql("t", columns=list("abc"), max_bytes=10**8),
    ),
    remedy(
        "have no names. Give columns=",
        odd.ELSEWHERE["columns without names"],
        lambda: odd.of_counts().to_sql("t", columns=list("abc")),
    ),
    remedy(
        "give the names of so many, or leave columns out",
        odd.ELSEWHERE["too few columns"],
        lambda: odd.of_counts().to_sql("t", columns=list("abc")),
        lambda: made(models.mixed)().to_sql("t"),
    ),
    remedy(
        "the table has this column. Give another name",
        odd.ELSEWHERE["a column of this name"],
        lambda: odd.of_counts().to_sql("t", columns=list("abc"), name="rate"),
    ),
    remedy(
        "choose one by of",
        lambda: made(_two)().predict(ROWS),
        lambda: made(_two)().predict(ROWS, of="g"),
    ),
]


def _two():
    with pm.Model() as model:
        data = pmt.Data("X", models.X)
        f, g = (pmt.BART(name, data, leaf=models.LEAF, m=3) for name in "fg")
        pm.Laplace("y", f + g, 1.0, observed=models.Y, shape=f.shape)
    return models.drawn(model, None)
