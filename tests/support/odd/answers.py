"""Odd inputs of the functions that ask what f says: dependence, comparisons, predictions."""

from functools import cache

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


def row(function, said, *args, of=cached_frame, change=lambda d: d, **given):
    """A row about one call on a small fitted model."""

    def call():
        model, idata = of()
        return function(change(idata), model, *args, **given)

    return Odd(call, said, holds=lambda found: isinstance(found, xr.Dataset))


def common(function, *args):
    """What every function of draws refuses."""
    return {
        "None": row(function, r"idata must be", *args, change=lambda d: None),
        "no posterior": row(function, r"no posterior", *args, change=lambda d: xr.DataTree()),
        "no model": Odd(lambda: function(cached_frame()[1], None, *args), r"[Mm]odel"),
        "prior only": row(function, r"no posterior.*group=.prior.", *args, change=prior_only),
        "model a frame": Odd(
            lambda: function(cached_frame()[1], frame(), *args), r"model=DataFrame.*pymc.Model.*X="
        ),
        "var_name missing": row(function, r"functions \['f', 'g'\].*var_name", of=cached_two),
        "var_name unknown": row(function, r"var_name='nu'.*\['mu'\]", *args, var_name="nu"),
    }


def _columns(function, name):
    """What is refused of a column."""
    return {
        f"{name} unknown": row(function, r"'weight' is not a column.*'age'", **{name: "weight"}),
        f"{name} beyond": row(function, r"7 is not a column.*3", **{name: 7}),
        f"{name} negative": row(function, r"-1 is not a column", **{name: -1}),
        f"{name} a bool": row(function, r"True is not a column", **{name: True}),
        f"{name} None": row(function, r"None is not a column", **{name: None}),
    }


def _rows_of_X(function, *args):
    """What is refused of other rows."""
    fewer, unknown = frame().drop(columns="site"), frame()
    unknown.loc[0, "site"] = "z"
    return {
        "X lacks a column": row(function, r"site", *args, X=fewer),
        "X an unknown level": row(function, None, *args, X=unknown),
        "X text": row(function, r"'rows'|X", *args, X="rows"),
    }


def _sample(idata):
    return az.extract(idata, num_samples=3, random_seed=1)


PARTIAL_DEPENDENCE = {
    **common(pmt.partial_dependence),
    **_columns(pmt.partial_dependence, "features"),
    **_rows_of_X(pmt.partial_dependence),
    "three columns": row(pmt.partial_dependence, r"tuple of two", (0, 1, 2)),
    "one column twice": row(pmt.partial_dependence, r"different columns", ("age", 0)),
    "kind": row(pmt.partial_dependence, r"kind='mean'.*'average'", kind="mean"),
    "grid unknown": row(pmt.partial_dependence, r"grid='even'.*'quantile'", grid="even"),
    "grid empty": row(pmt.partial_dependence, r"grid has no values.*'age'", grid=[]),
    "grid zero": row(pmt.partial_dependence, r"grid=0", grid=0),
    "grid infinite": row(pmt.partial_dependence, r"inf is not a value.*'age'", grid=[np.inf]),
    "grid of text": row(pmt.partial_dependence, r"'old' is not a value.*'age'", grid=["old"]),
    "grid level": row(pmt.partial_dependence, r"'z' is not a level.*'site'", "site", grid=["z"]),
    "grid missing": row(pmt.partial_dependence, None, grid=[None]),
    "grid a bool": row(pmt.partial_dependence, r"grid=True: give values", grid=True),
    "grid of no column": row(pmt.partial_dependence, r"'agee' is not a column", grid={"agee": [1]}),
    "grid of a bool": row(pmt.partial_dependence, r"True is not a column", grid={True: [1]}),
    "grid elsewhere": row(
        pmt.partial_dependence, r"grid has \['dose'\], which features.*'age'", grid={"dose": [1]}
    ),
    "func that reduces": row(
        pmt.partial_dependence, r"func returned the shape \(\).*elementwise", func=np.mean
    ),
    "func text": row(pmt.partial_dependence, r"func='exp': must be a function", func="exp"),
    "an array": row(pmt.partial_dependence, None, np.array([0, 1])),
    "random_state text": row(
        pmt.partial_dependence, r"random_state='x': must be", subsample=3, random_state="x"
    ),
    "subsample zero": row(pmt.partial_dependence, r"subsample=0", subsample=0),
    "subsample beyond": row(pmt.partial_dependence, None, subsample=99),
    "group missing": row(pmt.partial_dependence, r"no group 'prior'", group="prior"),
    "a Dataset": row(pmt.partial_dependence, None, change=lambda d: d["posterior"].to_dataset()),
    "stacked": row(pmt.partial_dependence, None, change=az.extract),
    "a sample": row(pmt.partial_dependence, None, change=_sample),
}

ACCUMULATED_EFFECTS = {
    **common(pmt.accumulated_effects),
    **_columns(pmt.accumulated_effects, "feature"),
    **_rows_of_X(pmt.accumulated_effects),
    "a pair": row(pmt.accumulated_effects, None, (0, 1)),
    "one column twice": row(pmt.accumulated_effects, r"feature=.*different columns", ("age", 0)),
    "three columns": row(pmt.accumulated_effects, r"feature=.*tuple of two", (0, 1, 2)),
    "grid of one": row(pmt.accumulated_effects, r"'age' has 1 values", grid=[1.0]),
    "grid of one quantile": row(pmt.accumulated_effects, r"'age' has 1 values", grid=1),
    "grid missing": row(pmt.accumulated_effects, r"'age'.*missing cell.*level", grid=[1, None]),
    "grid a level twice": row(
        pmt.accumulated_effects, r"'site'.*twice", "site", grid=["a", "b", "a"]
    ),
    "grid a bool": row(pmt.accumulated_effects, r"grid=True: give values", grid=True),
    "grid elsewhere": row(
        pmt.accumulated_effects, r"grid has \['dose'\].*'age'", grid={"dose": [1, 2]}
    ),
    "grid beyond": row(pmt.accumulated_effects, r"no row of X lies", grid=[1e6, 2e6]),
    "subsample zero": row(pmt.accumulated_effects, r"subsample=0", subsample=0),
    "group missing": row(pmt.accumulated_effects, r"no group 'prior'", group="prior"),
    "intervals zero": row(pmt.accumulated_effects, r"intervals=0", intervals=0),
    "intervals fraction": row(pmt.accumulated_effects, r"intervals=2.5", intervals=2.5),
}

PREDICTIONS = {
    **common(pmt.predictions),
    "a frame lacks a column": row(pmt.predictions, r"site", frame().drop(columns="site")),
    "func of no shape": row(pmt.predictions, r"func returned.*elementwise", func=lambda v: None),
    "an array of two columns": row(pmt.predictions, r"3", np.zeros((2, 2))),
    "no rows": row(pmt.predictions, r"no rows", pd.DataFrame(frame().iloc[:0])),
}

COMPARISONS = {
    **common(pmt.comparisons),
    "variables unknown": row(pmt.comparisons, r"'weight' is not a column", variables="weight"),
    "by unknown": row(pmt.comparisons, r"'weight' is not a column", by="weight"),
    "by beyond": row(pmt.comparisons, r"7 is not a column", by=7),
    "one value": row(pmt.comparisons, r"'age'.*at least two", variables={"age": [1]}),
    "text": row(pmt.comparisons, r"'age'.*at least two", variables={"age": "old"}),
    "a step of levels": row(pmt.comparisons, r"'site'.*at least two", variables={"site": 1}),
    "level unknown": row(pmt.comparisons, r"'z' is not a level", variables={"site": ("a", "z")}),
    "comparison": row(pmt.comparisons, r"comparison='log'.*'ratio'", comparison="log"),
    "comparison that reduces": row(
        pmt.comparisons, r"comparison returned.*elementwise", comparison=lambda a, b: a.mean()
    ),
    "a step NaN": row(pmt.comparisons, r"nan for.*'age' is not a step", variables={"age": np.nan}),
    "a step NA": row(pmt.comparisons, r"NA> for.*'age' is not a step", variables={"age": pd.NA}),
    "a step a bool": row(pmt.comparisons, r"'age'.*at least two", variables={"age": True}),
    "missing beside a level": row(pmt.comparisons, None, variables={"site": ["a", pd.NA]}),
}

SLOPES = {
    **common(pmt.slopes),
    "variables unknown": row(pmt.slopes, r"'weight' is not a column", variables="weight"),
    "of levels": row(pmt.slopes, r"'site'.*comparisons", variables="site"),
    "step zero": row(pmt.slopes, r"step=0", step=0),
    "step negative": row(pmt.slopes, r"step=-1", step=-1.0),
    "step NaN": row(pmt.slopes, r"step=nan", step=np.nan),
}
