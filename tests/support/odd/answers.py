"""Odd inputs of the functions that ask what f says: dependence, comparisons, predictions."""

from functools import cache

import numpy as np
import pandas as pd
import xarray as xr

import pymc_trees as pmt
from support.fitted import frame, on_a_frame, two_functions
from support.odd.table import Odd

_on_a_frame = cache(on_a_frame)
_two_functions = cache(two_functions)


def _row(function, said, *args, of=_on_a_frame, change=lambda d: d, **given):
    """A row about one call on a small fitted model."""

    def call():
        model, idata = of()
        return function(change(idata), model, *args, **given)

    return Odd(call, said, holds=lambda found: isinstance(found, xr.Dataset))


def _common(function, *args):
    """What every function of draws refuses."""
    return {
        "None": _row(function, r"idata must be", *args, change=lambda d: None),
        "no posterior": _row(function, r"no posterior", *args, change=lambda d: xr.DataTree()),
        "no model": Odd(lambda: function(_on_a_frame()[1], None, *args), r"[Mm]odel"),
        "var_name missing": _row(function, r"functions \['f', 'g'\].*var_name", of=_two_functions),
        "var_name unknown": _row(function, r"var_name='nu'.*\['mu'\]", *args, var_name="nu"),
    }


def _columns(function, name):
    """What is refused of a column."""
    return {
        f"{name} unknown": _row(function, r"'weight' is no column.*'age'", **{name: "weight"}),
        f"{name} beyond": _row(function, r"7 is no column.*3", **{name: 7}),
        f"{name} negative": _row(function, r"-1 is no column", **{name: -1}),
        f"{name} a bool": _row(function, r"True is no column", **{name: True}),
        f"{name} None": _row(function, r"None is no column", **{name: None}),
    }


def _rows_of_X(function, *args):
    """What is refused of other rows."""
    fewer, unknown = frame().drop(columns="site"), frame()
    unknown.loc[0, "site"] = "z"
    return {
        "X lacks a column": _row(function, r"site", *args, X=fewer),
        "X an unknown level": _row(function, None, *args, X=unknown),
        "X text": _row(function, r"'rows'|X", *args, X="rows"),
    }


PARTIAL_DEPENDENCE = {
    **_common(pmt.partial_dependence),
    **_columns(pmt.partial_dependence, "features"),
    **_rows_of_X(pmt.partial_dependence),
    "three columns": _row(pmt.partial_dependence, r"tuple of two", (0, 1, 2)),
    "one column twice": _row(pmt.partial_dependence, r"two different", ("age", 0)),
    "kind": _row(pmt.partial_dependence, r"kind='mean'.*'average'", kind="mean"),
    "grid unknown": _row(pmt.partial_dependence, r"grid='even'.*'quantile'", grid="even"),
    "grid empty": _row(pmt.partial_dependence, r"grid has no values.*'age'", grid=[]),
    "grid zero": _row(pmt.partial_dependence, r"grid=0", grid=0),
    "grid infinite": _row(pmt.partial_dependence, r"inf is no value.*'age'", grid=[np.inf]),
    "grid of text": _row(pmt.partial_dependence, r"'old' is no value.*'age'", grid=["old"]),
    "grid level": _row(pmt.partial_dependence, r"'z' is no level.*'site'", "site", grid=["z"]),
    "grid missing": _row(pmt.partial_dependence, None, grid=[None]),
    "subsample zero": _row(pmt.partial_dependence, r"subsample=0", subsample=0),
    "subsample beyond": _row(pmt.partial_dependence, None, subsample=99),
}

ACCUMULATED_EFFECTS = {
    **_common(pmt.accumulated_effects),
    **_columns(pmt.accumulated_effects, "feature"),
    **_rows_of_X(pmt.accumulated_effects),
    "a pair": _row(pmt.accumulated_effects, r"is no column", (0, 1)),
    "intervals zero": _row(pmt.accumulated_effects, r"intervals=0", intervals=0),
    "intervals fraction": _row(pmt.accumulated_effects, r"intervals=2.5", intervals=2.5),
}

PREDICTIONS = {
    **_common(pmt.predictions),
    "a frame lacks a column": _row(pmt.predictions, r"site", frame().drop(columns="site")),
    "an array of two columns": _row(pmt.predictions, r"3", np.zeros((2, 2))),
    "no rows": _row(pmt.predictions, r"no rows", pd.DataFrame(frame().iloc[:0])),
}

COMPARISONS = {
    **_common(pmt.comparisons),
    "variables unknown": _row(pmt.comparisons, r"'weight' is no column", variables="weight"),
    "by unknown": _row(pmt.comparisons, r"'weight' is no column", by="weight"),
    "by beyond": _row(pmt.comparisons, r"7 is no column", by=7),
    "one value": _row(pmt.comparisons, r"'age'.*at least two", variables={"age": [1]}),
    "text": _row(pmt.comparisons, r"'age'.*at least two", variables={"age": "old"}),
    "a step of levels": _row(pmt.comparisons, r"'site'.*at least two", variables={"site": 1}),
    "level unknown": _row(pmt.comparisons, r"'z' is no level", variables={"site": ("a", "z")}),
    "comparison": _row(pmt.comparisons, r"comparison='log'.*'ratio'", comparison="log"),
}

SLOPES = {
    **_common(pmt.slopes),
    "variables unknown": _row(pmt.slopes, r"'weight' is no column", variables="weight"),
    "of levels": _row(pmt.slopes, r"'site'.*comparisons", variables="site"),
    "step zero": _row(pmt.slopes, r"step=0", step=0),
    "step negative": _row(pmt.slopes, r"step=-1", step=-1.0),
    "step NaN": _row(pmt.slopes, r"step=nan", step=np.nan),
}
