"""Odd inputs of predictors: how they are made, asked and read."""

import tempfile
from functools import cache
from pathlib import Path

import numpy as np

import pymc_trees as pmt
from pymc_trees import survival
from support import predictor_models as models
from support.odd.table import Odd


@cache
def expressions():
    """A model with data beside X."""
    return models.expressions()


@cache
def counts():
    """A model of counts."""
    return models.response("poisson")


@cache
def of_expressions():
    """Its predictor."""
    return pmt.predictor(expressions().idata, expressions().model)


@cache
def of_counts():
    """Its predictor."""
    return pmt.predictor(counts().idata, counts().model)


@cache
def times():
    """A model of times."""
    return models.drawn(
        survival.accelerated_failure_time(models.X, np.exp(models.Y), np.ones(models.N), m=3), None
    )


@cache
def of_times():
    """Its predictor."""
    return pmt.predictor(times().idata, times().model)


@cache
def of_hazards():
    """A predictor of events on the long form of an array of two columns."""
    X, time = models.X[:, 1:], np.exp(models.Y)
    case = models.drawn(survival.discrete_time(X, time, np.ones(models.N), times=4, m=3), None)
    return pmt.predictor(case.idata, case.model)


def made(case=expressions, **given):
    """What makes a predictor."""
    return lambda: pmt.predictor(case().idata, case().model, **given)


def asked(method, *args, by=of_counts, rows=None, **given):
    """What asks one."""

    def call():
        X = models.new_array(5) if rows is None else rows
        return getattr(by(), method)(X, *args, **given)

    return call


def loaded(content: bytes, **given):
    """What reads a file."""

    def call():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "fit.pmt"
            path.write_bytes(content)
            return pmt.load(path, **given)

    return call


def whole() -> bytes:
    """A good file."""
    with tempfile.TemporaryDirectory() as folder:
        return of_counts().save(Path(folder) / "fit.pmt").read_bytes()


PREDICTOR = {
    "None": Odd(lambda: pmt.predictor(None, counts().model), TypeError("idata")),
    "no model": Odd(lambda: pmt.predictor(counts().idata, None), TypeError("model")),
    "draws=0": Odd(made(draws=0), "draws"),
    "more draws than there are": Odd(made(draws=10**6), holds=lambda p: p.draws_per_chain == 4),
    "var_names unknown": Odd(made(var_names="nothing"), "var_names"),
    "a function alone": Odd(made(var_names="f"), holds=lambda p: p.functions == ["f"]),
    "response unknown": Odd(made(response="f"), "response"),
}
OF_PREDICTOR = {
    "kind unknown": Odd(asked("predict", "median"), "kind"),
    "of unknown": Odd(asked("predict", of="nothing"), "of"),
    "quantiles at 1": Odd(asked("predict", quantiles=(0.5, 1.0)), "quantiles"),
    "level above 1": Odd(asked("predict", "interval", level=1.5), "level"),
    "n_jobs=0": Odd(asked("predict", n_jobs=0), "n_jobs"),
    "no rows": Odd(asked("predict", rows=np.empty((0, 3))), "X"),
    "columns lacking": Odd(asked("predict", rows=np.zeros((2, 2))), "X"),
    "one dimension": Odd(asked("predict", rows=np.zeros(3)), "X"),
    "infinite": Odd(asked("predict", rows=np.full((1, 3), np.inf)), "X"),
    "text": Odd(asked("predict", rows=[["a", "b", "c"]]), "X"),
    "all missing": Odd(
        asked("predict", rows=np.full((2, 3), np.nan)), holds=lambda f: np.isfinite(f).all()
    ),
    "classes of counts": Odd(asked("predict_proba"), "predict_proba"),
    "seed of text": Odd(asked("sample_y", random_seed="a"), TypeError("random_seed")),
    "func of nothing": Odd(asked("function", lambda nothing: 0), "func"),
    "draws of a parameter": Odd(asked("draws", var_names="s"), "'s'"),
    "thinned to none": Odd(lambda: of_counts().thinned(0), "draws"),
    "data lacking": Odd(asked("draws", by=of_expressions), "X"),
    "data of no such name": Odd(
        asked("draws", by=of_expressions, rows=expressions().new | {"other": 1}), "X"
    ),
}


def query(**given):
    """What writes a query of counts."""
    return lambda: of_counts().to_sql("t", **{"columns": list("abc")} | given)


ELSEWHERE = {
    "kind unknown": Odd(lambda: of_counts().to_onnx("median"), "kind"),
    "no kind": Odd(lambda: of_counts().to_onnx(()), "kind"),
    "quantiles at 0": Odd(lambda: of_counts().to_onnx(quantiles=(0.0,)), "quantiles"),
    "of unknown": Odd(lambda: of_counts().to_onnx(of="nothing"), "of"),
    "a new observation": Odd(lambda: of_counts().to_onnx(of="y"), "of"),
    "draws=0": Odd(lambda: of_counts().to_onnx(draws=0), "draws"),
    "JSON of no draws": Odd(lambda: of_counts().to_json(draws=0), "draws"),
    "dialect unknown": Odd(query(dialect="oracle"), "dialect"),
    "a long query": Odd(query(max_bytes=500), "max_bytes"),
    "max_bytes=0": Odd(query(max_bytes=0), "max_bytes"),
    "columns without names": Odd(query(columns=None), "columns"),
    "too few columns": Odd(query(columns=["a"]), "columns"),
    "columns in one text": Odd(query(columns="abc"), "columns"),
    "a column of this name": Odd(query(name="B"), "name"),
    "a query of y": Odd(query(of="y"), "of"),
}
OF_TIMES = {
    "no times": Odd(lambda: of_times().survival(models.X), "times"),
    "times that go back": Odd(lambda: of_times().survival(models.X, [1.0, 0.5]), "times"),
    "times of text": Odd(lambda: of_times().survival(models.X, ["soon"]), "soon"),
    "kind unknown": Odd(lambda: of_times().survival(models.X, [1.0], "median"), "kind"),
    "no grid": Odd(lambda: of_hazards().survival(models.X[:, 1:]), "grid"),
    "an infinite grid": Odd(
        lambda: of_hazards().survival(models.X[:, 1:], grid=[1.0, np.inf]), "grid"
    ),
    "curves of counts": Odd(lambda: of_counts().survival(models.X, [1.0]), "survival"),
    "before all times": Odd(
        lambda: of_times().survival(models.X, [-1.0, 0.0]), holds=lambda S: (S == 1.0).all()
    ),
}
OPEN = {
    "no file": Odd(lambda: pmt.open("nothing.nc"), FileNotFoundError("nothing.nc")),
    "a folder": Odd(lambda: pmt.open("."), FileNotFoundError("path")),
    "no draws": Odd(lambda: pmt.open(__file__), "path"),
    "max_bytes=-1": Odd(lambda: pmt.open("nothing.nc", max_bytes=-1), "max_bytes"),
}
LOAD = {
    "no file": Odd(lambda: pmt.load("nothing.pmt"), FileNotFoundError("nothing.pmt")),
    "empty": Odd(loaded(b""), "fit.pmt"),
    "another file": Odd(loaded(b"PK" * 100), "fit.pmt"),
    "max_bytes=0": Odd(lambda: pmt.load("nothing.pmt", max_bytes=0), "max_bytes"),
}
