"""Odd inputs of what comes in closed form: Shapley values, Sobol indices, H statistics."""

from functools import partial

import numpy as np
import xarray as xr

import pymc_trees as pmt
from support.fitted import frame
from support.odd.answers import cached_frame, cached_two, common, row
from support.odd.table import Odd

QUIET = {"progressbar": False, "cores": 1}


def _closed_form(function):
    """What every one of them refuses."""
    quiet = partial(function, **QUIET)
    return common(quiet) | {
        "draws zero": row(quiet, "draws", draws=0),
        "draws fraction": row(quiet, "draws", draws=2.5),
        "draws beyond": row(quiet, None, draws=99),
        "cores zero": row(partial(function, progressbar=False), "cores", cores=0),
        "X lacks a column": row(quiet, "X", X=frame().drop(columns="site")),
        "X without rows": row(quiet, "X", X=frame().iloc[:0]),
        "a curved function": row(quiet, "rate", of=cached_two, var_name="rate"),
        "func of a sum": row(quiet, "func", func=np.exp),
    }


def _of_values(function):
    """And those that take a background."""
    quiet = partial(function, **QUIET)
    return _closed_form(function) | {
        "background zero": row(quiet, "background", background=0),
        "background lacks a column": row(
            quiet, "background", background=frame().drop(columns="site")
        ),
        "background without rows": row(quiet, "background", background=frame().iloc[:0]),
        "background True": row(quiet, "background", background=True),
        "background one row": row(quiet, "background", background=frame().age),
        "background beyond": row(quiet, None, background=99),
    }


SHAP_VALUES = _of_values(pmt.shap_values) | {
    "permutations one": row(partial(pmt.shap_values, **QUIET), "permutations", permutations=1),
    "other data": row(partial(pmt.shap_values, **QUIET), "X", X={"X": frame(), "dose": 1.0}),
}
SHAP_INTERACTIONS = _of_values(pmt.shap_interactions)
SOBOL_INDICES = _closed_form(pmt.sobol_indices)
INTERACTION_STRENGTH = _closed_form(pmt.interaction_strength) | {
    "features unknown": row(
        partial(pmt.interaction_strength, **QUIET), "'weight'", features=["weight"]
    ),
    "features twice": row(
        partial(pmt.interaction_strength, **QUIET), "features", features=["age", 0]
    ),
    "features empty": row(partial(pmt.interaction_strength, **QUIET), "features", features=[]),
    "subsample zero": row(partial(pmt.interaction_strength, **QUIET), "subsample", subsample=0),
}


def _explanation():
    model, idata = cached_frame()
    return pmt.shap_values(idata, model, **QUIET)


def _of_two_outputs():
    model, idata = cached_two()
    return pmt.shap_values(idata, model, var_name="f", **QUIET)


TO_SHAP = {
    "draws": Odd(lambda: pmt.to_shap(cached_frame()[1]), "explanation"),
    "another Dataset": Odd(lambda: pmt.to_shap(xr.Dataset()), "explanation"),
    "two outputs": Odd(lambda: pmt.to_shap(_of_two_outputs()), "isel"),
    "quantile beyond": Odd(lambda: pmt.to_shap(_explanation(), 1.5), "quantile"),
    "quantile text": Odd(lambda: pmt.to_shap(_explanation(), "mean"), "quantile"),
}
