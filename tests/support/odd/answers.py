"""Odd inputs of the functions that ask what f says: dependence, comparisons, predictions."""

from functools import cache, partial

import arviz as az
import numpy as np
import pandas as pd
import xarray as xr

import pymc_trees as pmt
from support.fitted import frame, on_a_frame, two_functions
from support.odd.table import Odd

cached_frame = cache(on_a_frame)
cached_two = cache(two_functions)


def prior_only(idata):
    """The same draws, as if they were of the prior, and no others."""
    return xr.DataTree.from_dict({"prior": idata["posterior"].to_dataset()})


def row(function, refused, *args, of=cached_frame, change=lambda d: d, **given):
    """A row about one call on a small fitted model."""

    def call():
        model, idata = of()
        return function(change(idata), model, *args, **given)

    return Odd(call, refused, holds=lambda found: isinstance(found, xr.Dataset))


def common(function, *args):
    """What every function of draws refuses."""
    return {
        "None": row(function, TypeError("idata"), *args, change=lambda d: None),
        "no posterior": row(function, "idata", *args, change=lambda d: xr.DataTree()),
        "no model": Odd(lambda: function(cached_frame()[1], None, *args), TypeError("model")),
        "prior only": row(function, "posterior", *args, change=prior_only),
        "model a frame": Odd(
            lambda: function(cached_frame()[1], frame(), *args), TypeError("model")
        ),
        "var_name missing": row(function, "var_name", of=cached_two),
        "var_name unknown": row(function, "var_name", *args, var_name="nu"),
    }


def _columns(function, name):
    """What is refused of a column."""
    return {
        f"{name} unknown": row(function, "'weight'", **{name: "weight"}),
        f"{name} beyond": row(function, "7", **{name: 7}),
        f"{name} negative": row(function, "-1", **{name: -1}),
        f"{name} a bool": row(function, "True", **{name: True}),
        f"{name} None": row(function, "None", **{name: None}),
    }


def _rows_of_X(function, *args):
    """What is refused of other rows."""
    fewer, unknown = frame().drop(columns="site"), frame()
    unknown.loc[0, "site"] = "z"
    return {
        "X lacks a column": row(function, "X", *args, X=fewer),
        "X an unknown level": row(function, None, *args, X=unknown),
        "X text": row(function, "X", *args, X="rows"),
    }


def _sample(idata):
    return az.extract(idata, num_samples=3, random_seed=1)


def _followed(**given):
    return partial(pmt.forecast, progressbar=False, **given)


FORECAST = {
    **common(_followed(X=frame())),
    "X None": row(_followed(), "X"),
    "X text": row(_followed(), "X", X="rows"),
    "X zero": row(_followed(), "X", X=0),
    "X True": row(_followed(), "X", X=True),
    "X lacks a column": row(_followed(), "X", X=frame().drop(columns="site")),
    "a lag fills a column": row(
        _followed(), None, X=frame().drop(columns="dose"), lags={"dose": 2}
    ),
    "lags of no column": row(_followed(X=frame()), "lags", lags={"weight": 1}),
    "lag zero": row(_followed(X=frame()), "lags", lags={"dose": 0}),
    "lag a fraction": row(_followed(X=frame()), "lags", lags={"dose": 1.5}),
    "lag beyond the rows": row(_followed(X=frame()), "history", lags={"dose": 99}),
    "history of two": row(_followed(X=frame()), "history", history=np.ones((4, 2))),
    "known too short": row(_followed(X=frame()), "known", known=[1.0]),
    "sample text": row(_followed(X=frame()), TypeError("sample"), sample="normal"),
    "update text": row(_followed(X=frame()), TypeError("update"), update={"dose": "one"}),
    "update a number": row(_followed(X=frame()), None, update={"dose": lambda: 1.0}),
    "draws zero": row(_followed(X=frame()), "draws", draws=0),
    "random_state text": row(_followed(X=frame()), TypeError("random_state"), random_state="x"),
}

PARTIAL_DEPENDENCE = {
    **common(pmt.partial_dependence),
    **_columns(pmt.partial_dependence, "features"),
    **_rows_of_X(pmt.partial_dependence),
    "three columns": row(pmt.partial_dependence, "tuple", (0, 1, 2)),
    "one column twice": row(pmt.partial_dependence, "different", ("age", 0)),
    "kind": row(pmt.partial_dependence, "kind", kind="mean"),
    "grid unknown": row(pmt.partial_dependence, "grid", grid="even"),
    "grid empty": row(pmt.partial_dependence, "grid", grid=[]),
    "grid zero": row(pmt.partial_dependence, "grid", grid=0),
    "grid infinite": row(pmt.partial_dependence, "'age'", grid=[np.inf]),
    "grid of text": row(pmt.partial_dependence, "'old'", grid=["old"]),
    "grid level": row(pmt.partial_dependence, "'z'", "site", grid=["z"]),
    "grid missing": row(pmt.partial_dependence, None, grid=[None]),
    "grid a bool": row(pmt.partial_dependence, "grid", grid=True),
    "grid a float": row(pmt.partial_dependence, "grid", grid=5.0),
    "grid of no column": row(pmt.partial_dependence, "'agee'", grid={"agee": [1]}),
    "grid of a bool": row(pmt.partial_dependence, "True", grid={True: [1]}),
    "grid elsewhere": row(pmt.partial_dependence, "grid", grid={"dose": [1]}),
    "func that reduces": row(pmt.partial_dependence, "func", func=np.mean),
    "func text": row(pmt.partial_dependence, "func", func="exp"),
    "an array": row(pmt.partial_dependence, "features", np.array([0, 1])),
    "random_state text": row(
        pmt.partial_dependence, TypeError("random_state"), subsample=3, random_state="x"
    ),
    "subsample zero": row(pmt.partial_dependence, "subsample", subsample=0),
    "subsample beyond": row(pmt.partial_dependence, None, subsample=99),
    "group missing": row(pmt.partial_dependence, "group", group="prior"),
    "a Dataset": row(pmt.partial_dependence, None, change=lambda d: d["posterior"].to_dataset()),
    "stacked": row(pmt.partial_dependence, None, change=az.extract),
    "a sample": row(pmt.partial_dependence, None, change=_sample),
}

ACCUMULATED_EFFECTS = {
    **common(pmt.accumulated_effects),
    **_columns(pmt.accumulated_effects, "feature"),
    **_rows_of_X(pmt.accumulated_effects),
    "a pair": row(pmt.accumulated_effects, None, (0, 1)),
    "one column twice": row(pmt.accumulated_effects, "feature", ("age", 0)),
    "three columns": row(pmt.accumulated_effects, "feature", (0, 1, 2)),
    "grid of one": row(pmt.accumulated_effects, "'age'", grid=[1.0]),
    "grid of one quantile": row(pmt.accumulated_effects, "'age'", grid=1),
    "grid missing": row(pmt.accumulated_effects, "grid", grid=[1, None]),
    "grid a level twice": row(pmt.accumulated_effects, "grid", "site", grid=["a", "b", "a"]),
    "grid a bool": row(pmt.accumulated_effects, "grid", grid=True),
    "grid elsewhere": row(pmt.accumulated_effects, "grid", grid={"dose": [1, 2]}),
    "grid beyond": row(pmt.accumulated_effects, "grid", grid=[1e6, 2e6]),
    "subsample zero": row(pmt.accumulated_effects, "subsample", subsample=0),
    "group missing": row(pmt.accumulated_effects, "group", group="prior"),
    "intervals zero": row(pmt.accumulated_effects, "intervals", intervals=0),
    "intervals fraction": row(pmt.accumulated_effects, "intervals", intervals=2.5),
}

PREDICTIONS = {
    **common(pmt.predictions),
    "a frame lacks a column": row(pmt.predictions, "site", frame().drop(columns="site")),
    "func of no shape": row(pmt.predictions, "func", func=lambda v: None),
    "an array of two columns": row(pmt.predictions, "3", np.zeros((2, 2))),
    "no rows": row(pmt.predictions, "no", pd.DataFrame(frame().iloc[:0])),
    "data of no name": row(pmt.predictions, "'weight'", {"weight": 1.0}),
    "data without X": row(pmt.predictions, None, {}),
    "draws zero": row(pmt.predictions, "draws", draws=0),
    "summary a word": row(pmt.predictions, "summary", summary="median"),
    "summary beyond": row(pmt.predictions, "summary", summary=(0.5, 95)),
    "where too short": row(pmt.predictions, "where", where=[True]),
    "where a word": row(pmt.predictions, "where", where="land"),
    "where numbers": row(pmt.predictions, "where", where=np.arange(12)),
}

COMPARISONS = {
    **common(pmt.comparisons),
    "variables unknown": row(pmt.comparisons, "'weight'", variables="weight"),
    "by unknown": row(pmt.comparisons, "'weight'", by="weight"),
    "by beyond": row(pmt.comparisons, "7", by=7),
    "one value": row(pmt.comparisons, "'age'", variables={"age": [1]}),
    "text": row(pmt.comparisons, "'age'", variables={"age": "old"}),
    "a step of levels": row(pmt.comparisons, "'site'", variables={"site": 1}),
    "level unknown": row(pmt.comparisons, "'z'", variables={"site": ("a", "z")}),
    "comparison": row(pmt.comparisons, "comparison", comparison="log"),
    "comparison that reduces": row(pmt.comparisons, "comparison", comparison=lambda a, b: a.mean()),
    "a step NaN": row(pmt.comparisons, "'age'", variables={"age": np.nan}),
    "a step NA": row(pmt.comparisons, "'age'", variables={"age": pd.NA}),
    "a step a bool": row(pmt.comparisons, "'age'", variables={"age": True}),
    "missing beside a level": row(pmt.comparisons, None, variables={"site": ["a", pd.NA]}),
}

SLOPES = {
    **common(pmt.slopes),
    "variables unknown": row(pmt.slopes, "'weight'", variables="weight"),
    "of levels": row(pmt.slopes, "'site'", variables="site"),
    "step zero": row(pmt.slopes, "step", step=0),
    "step negative": row(pmt.slopes, "step", step=-1.0),
    "step NaN": row(pmt.slopes, "step", step=np.nan),
}
