"""Odd inputs of pictures of what the draws say."""

from functools import partial

import matplotlib as mpl
import numpy as np
import xarray as xr

import pymc_trees as pmt
from support.fitted import frame
from support.odd.answers import cached_frame, cached_two, prior_only
from support.odd.table import Odd
from support.odd.trees import soft_draws

mpl.use("Agg")


def _drawn(function, refused, of=cached_frame, change=lambda d: d, **given):
    def call():
        model, idata = of()
        return function(change(idata), model, backend="none", **given)

    return Odd(call, refused)


def _of_functions(function):
    drawn = partial(_drawn, function)
    return {
        "None": drawn(TypeError("idata"), change=lambda d: None),
        "no posterior": drawn("idata", change=lambda d: xr.DataTree()),
        "prior only": drawn("posterior", change=prior_only),
        "model a frame": Odd(
            lambda: function(cached_frame()[1], frame(), backend="none"), TypeError("model")
        ),
        "var_name missing": drawn("var_name", of=cached_two),
        "var_name unknown": drawn("var_name", var_name="nu"),
    }


def _of_columns(function):
    drawn = partial(_drawn, function)
    return _of_functions(function) | {
        "feature unknown": drawn("'weight'", features="weight"),
        "features an array": drawn(None, features=np.array([0, 1])),
        "a keyword of pymc-bart": drawn(TypeError("var_idx"), var_idx=[0]),
        "feature beyond": drawn("7", features=[0, 7]),
        "no features": drawn("features", features=[]),
        "draws zero": drawn("draws", draws=0),
        "draws beyond": drawn(None, draws=99),
        "ci_prob percent": drawn("ci_prob", ci_prob=95),
    }


PLOT_PDP = _of_columns(pmt.plot_pdp) | {
    "grid unknown": _drawn(pmt.plot_pdp, "grid", grid="even"),
    "one value": _drawn(pmt.plot_pdp, None, features="age", grid=[50.0]),
    "subsample zero": _drawn(pmt.plot_pdp, "subsample", subsample=0),
    "three": _drawn(pmt.plot_pdp, "features", features=("age", "site", "dose")),
    "a pair, centred": _drawn(pmt.plot_pdp, "centred", features=(0, 1), centred=True),
    "one column twice": _drawn(pmt.plot_pdp, "different", features=("age", 0)),
    "a pair of one value each": _drawn(pmt.plot_pdp, None, features=("age", "dose"), grid=[1.0]),
}
PLOT_ICE = _of_columns(pmt.plot_ice) | {
    "subsample zero": _drawn(pmt.plot_ice, "subsample", subsample=0),
    "subsample beyond": _drawn(pmt.plot_ice, None, subsample=10_000),
    "random_state text": _drawn(
        pmt.plot_ice, TypeError("random_state"), subsample=3, random_state="x"
    ),
    "group missing": _drawn(pmt.plot_ice, "group", group="prior"),
}
PLOT_ALE = _of_columns(pmt.plot_ale) | {
    "intervals zero": _drawn(pmt.plot_ale, "intervals", intervals=0),
    "a pair": _drawn(pmt.plot_ale, "accumulated_effects", features=(0, 1)),
}
PLOT_CONVERGENCE = _of_functions(pmt.plot_convergence) | {
    "one chain": _drawn(pmt.plot_convergence, "idata", change=lambda d: d.isel(chain=[0])),
}


def _diagnosed(refused, change=lambda d: d, **given):
    def call():
        model, idata = cached_frame()
        found = pmt.diagnose(change(idata), model, progressbar=False)
        return pmt.plot_diagnosis(found, backend="none", **given)

    return Odd(call, refused)


PLOT_DIAGNOSIS = {
    "None": Odd(lambda: pmt.plot_diagnosis(None), "diagnosis"),
    "draws": Odd(lambda: pmt.plot_diagnosis(cached_frame()[1]), "diagnosis"),
    "one chain": _diagnosed("diagnosis", lambda d: d.isel(chain=[0])),
    "two chains": _diagnosed(None),
}


def _swarm(refused, change=lambda found: found, **given):
    def call():
        model, idata = cached_frame()
        found = pmt.shap_values(idata, model, progressbar=False)
        return pmt.plot_shap(change(found), backend="none", **given)

    return Odd(call, refused)


PLOT_SHAP = {
    "None": Odd(lambda: pmt.plot_shap(None), "explanation"),
    "draws": Odd(lambda: pmt.plot_shap(cached_frame()[1]), "explanation"),
    "interactions": _swarm("holds", lambda found: found.expand_dims("other")),
    "one row": _swarm(None, lambda found: found.isel(row=[0])),
    "top zero": _swarm("top", top=0),
    "top beyond": _swarm(None, top=99),
    "ci_prob percent": _swarm("ci_prob", ci_prob=95),
}
PLOT_VARIABLE_INCLUSION = {
    "None": _drawn(pmt.plot_variable_inclusion, TypeError("idata"), change=lambda d: None),
    "prior only": _drawn(pmt.plot_variable_inclusion, "group", change=prior_only),
    "a soft tree": _drawn(pmt.plot_variable_inclusion, "SoftDecisionTree", of=soft_draws),
    "forest missing": _drawn(pmt.plot_variable_inclusion, "forest", of=cached_two),
    "forest unknown": _drawn(pmt.plot_variable_inclusion, "forest", forest="nu"),
    "top zero": _drawn(pmt.plot_variable_inclusion, "top", top=0),
    "top beyond": _drawn(pmt.plot_variable_inclusion, None, top=9),
    "ci_prob text": _drawn(pmt.plot_variable_inclusion, "ci_prob", ci_prob="95%"),
}


def _overlap(refused, found=None, **given):
    found = pmt.causal.overlap([0.1, 0.4, 0.6, 0.5], [0, 0, 1, 1]) if found is None else found
    return Odd(lambda: pmt.plot_overlap(found, **{"backend": "none"} | given), refused)


PLOT_OVERLAP = {
    "no bins": _overlap("bins", bins=0),
    "one bin": _overlap(None, bins=1),
    "propensities": _overlap("overlap", found=[0.1, 0.9]),
    "another dataset": _overlap("overlap", found=xr.Dataset({"a": 1})),
}


def _curves(**dims):
    shape = [len(of) for of in dims.values()]
    values = xr.DataArray(np.full((1, 2, *shape, 2), 0.5), dims=["chain", "draw", *dims, "time"])
    found = values.assign_coords(time=[1.0, 2.0], **dims)
    return xr.Dataset({"survival": found}, attrs={"stepwise": 1})


def _survival(refused, curves=None, *given, **more):
    curves = _curves() if curves is None else curves
    return Odd(lambda: pmt.plot_survival(curves, *given, **{"backend": "none"} | more), refused)


_ARMS = _curves(arm=["a", "b"])
_EVENTS = _curves().rename(survival="expected")
PLOT_SURVIVAL = {
    "an array": _survival("curves", _curves()["survival"]),
    "another dataset": _survival("curves", xr.Dataset({"a": 1})),
    "means": _survival("curves", _curves().mean("draw")),
    "too many": _survival("'row'", _curves(row=range(11))),
    "ten": _survival(None, _curves(row=range(10))),
    "ci_prob percent": _survival("ci_prob", ci_prob=95),
    "time without event": _survival("time", None, [1.0, 2.0]),
    "of other lengths": _survival("time", None, [1.0, 2.0], [1]),
    "no events": _survival(None, None, [1.0, 2.0], [0, 0]),
    "groups unknown": _survival("group", _ARMS, [1, 2], [1, 1], group=["a", "c"]),
    "group too short": _survival("group", _ARMS, [1, 2], [1, 1], group=["a"]),
    "group of one curve": _survival("group", None, [1, 2], [1, 1], group=["a", "b"]),
    "events expected": _survival("time", _EVENTS, [1.0], [1]),
}
