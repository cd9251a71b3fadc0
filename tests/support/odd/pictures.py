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


def _drawn(function, said, of=cached_frame, change=lambda d: d, **given):
    def call():
        model, idata = of()
        return function(change(idata), model, backend="none", **given)

    return Odd(call, said)


def _of_functions(function):
    drawn = partial(_drawn, function)
    return {
        "None": drawn(r"idata must be", change=lambda d: None),
        "no posterior": drawn(r"no posterior", change=lambda d: xr.DataTree()),
        "prior only": drawn(r"no posterior.*group=.prior.", change=prior_only),
        "model a frame": Odd(
            lambda: function(cached_frame()[1], frame(), backend="none"), r"model=DataFrame"
        ),
        "var_name missing": drawn(r"functions \['f', 'g'\]", of=cached_two),
        "var_name unknown": drawn(r"var_name='nu'.*\['mu'\]", var_name="nu"),
    }


def _of_columns(function):
    drawn = partial(_drawn, function)
    return _of_functions(function) | {
        "feature unknown": drawn(r"'weight' is not a column.*'age'", features="weight"),
        "features an array": drawn(None, features=np.array([0, 1])),
        "a keyword of pymc-bart": drawn(r"no var_idx=.*features=", var_idx=[0]),
        "feature beyond": drawn(r"7 is not a column", features=[0, 7]),
        "no features": drawn(r"features.*at least one", features=[]),
        "draws zero": drawn(r"draws=0", draws=0),
        "draws beyond": drawn(None, draws=99),
        "ci_prob percent": drawn(r"ci_prob=95", ci_prob=95),
    }


PLOT_PDP = _of_columns(pmt.plot_pdp) | {
    "grid unknown": _drawn(pmt.plot_pdp, r"grid='even'", grid="even"),
    "one value": _drawn(pmt.plot_pdp, None, features="age", grid=[50.0]),
    "subsample zero": _drawn(pmt.plot_pdp, r"subsample=0", subsample=0),
    "three": _drawn(pmt.plot_pdp, r"a tuple is a pair", features=("age", "site", "dose")),
    "a pair, centred": _drawn(pmt.plot_pdp, r"cannot be centred", features=(0, 1), centred=True),
    "one column twice": _drawn(pmt.plot_pdp, r"different columns", features=("age", 0)),
    "a pair of one value each": _drawn(pmt.plot_pdp, None, features=("age", "dose"), grid=[1.0]),
}
PLOT_ICE = _of_columns(pmt.plot_ice) | {
    "subsample zero": _drawn(pmt.plot_ice, r"subsample=0", subsample=0),
    "subsample beyond": _drawn(pmt.plot_ice, None, subsample=10_000),
    "random_state text": _drawn(pmt.plot_ice, r"random_state='x'", subsample=3, random_state="x"),
    "group missing": _drawn(pmt.plot_ice, r"no group 'prior'.*'posterior'", group="prior"),
}
PLOT_ALE = _of_columns(pmt.plot_ale) | {
    "intervals zero": _drawn(pmt.plot_ale, r"intervals=0", intervals=0),
    "a pair": _drawn(pmt.plot_ale, r"pair of columns.*accumulated_effects.*list", features=(0, 1)),
}
PLOT_CONVERGENCE = _of_functions(pmt.plot_convergence) | {
    "one chain": _drawn(
        pmt.plot_convergence, r"one chain.*two", change=lambda d: d.isel(chain=[0])
    ),
}


def _swarm(said, change=lambda found: found, **given):
    def call():
        model, idata = cached_frame()
        found = pmt.shap_values(idata, model, progressbar=False)
        return pmt.plot_shap(change(found), backend="none", **given)

    return Odd(call, said)


PLOT_SHAP = {
    "None": Odd(lambda: pmt.plot_shap(None), r"explanation must be a result of shap_values"),
    "draws": Odd(lambda: pmt.plot_shap(cached_frame()[1]), r"explanation must be"),
    "interactions": _swarm(r"holds interactions", lambda found: found.expand_dims("other")),
    "one row": _swarm(None, lambda found: found.isel(row=[0])),
    "top zero": _swarm(r"top=0", top=0),
    "top beyond": _swarm(None, top=99),
    "ci_prob percent": _swarm(r"ci_prob=95", ci_prob=95),
}
PLOT_VARIABLE_INCLUSION = {
    "None": _drawn(pmt.plot_variable_inclusion, r"idata must be", change=lambda d: None),
    "prior only": _drawn(pmt.plot_variable_inclusion, r"group=.prior.", change=prior_only),
    "a soft tree": _drawn(pmt.plot_variable_inclusion, r"SoftDecisionTree", of=soft_draws),
    "forest missing": _drawn(pmt.plot_variable_inclusion, r"forests.*by forest", of=cached_two),
    "forest unknown": _drawn(pmt.plot_variable_inclusion, r"forest='nu'", forest="nu"),
    "top zero": _drawn(pmt.plot_variable_inclusion, r"top=0", top=0),
    "top beyond": _drawn(pmt.plot_variable_inclusion, None, top=9),
    "ci_prob text": _drawn(pmt.plot_variable_inclusion, r"ci_prob='95%'", ci_prob="95%"),
}


def _overlap(said, found=None, **given):
    found = pmt.causal.overlap([0.1, 0.4, 0.6, 0.5], [0, 0, 1, 1]) if found is None else found
    return Odd(lambda: pmt.plot_overlap(found, **{"backend": "none"} | given), said)


PLOT_OVERLAP = {
    "no bins": _overlap(r"bins=0", bins=0),
    "one bin": _overlap(None, bins=1),
    "propensities": _overlap(r"overlap: .*causal\.overlap", found=[0.1, 0.9]),
    "another dataset": _overlap(r"overlap: .*causal\.overlap", found=xr.Dataset({"a": 1})),
}


def _curves(**dims):
    shape = [len(of) for of in dims.values()]
    values = xr.DataArray(np.full((1, 2, *shape, 2), 0.5), dims=["chain", "draw", *dims, "time"])
    found = values.assign_coords(time=[1.0, 2.0], **dims)
    return xr.Dataset({"survival": found}, attrs={"stepwise": 1})


def _survival(said, curves=None, *given, **more):
    curves = _curves() if curves is None else curves
    return Odd(lambda: pmt.plot_survival(curves, *given, **{"backend": "none"} | more), said)


_ARMS = _curves(arm=["a", "b"])
_EVENTS = _curves().rename(survival="expected")
PLOT_SURVIVAL = {
    "an array": _survival(r"curves: give the Dataset", _curves()["survival"]),
    "another dataset": _survival(r"curves: give the Dataset", xr.Dataset({"a": 1})),
    "means": _survival(r"curves: give the Dataset", _curves().mean("draw")),
    "too many": _survival(r"'row': 11.*at most 10.*by=", _curves(row=range(11))),
    "ten": _survival(None, _curves(row=range(10))),
    "ci_prob percent": _survival(r"ci_prob=95", ci_prob=95),
    "time without event": _survival(r"time and event have shapes", None, [1.0, 2.0]),
    "of other lengths": _survival(r"time and event have shapes", None, [1.0, 2.0], [1]),
    "no events": _survival(None, None, [1.0, 2.0], [0, 0]),
    "groups unknown": _survival(
        r"group must hold the label.*'a'", _ARMS, [1, 2], [1, 1], group=["a", "c"]
    ),
    "group too short": _survival(r"group must hold the label", _ARMS, [1, 2], [1, 1], group=["a"]),
    "group of one curve": _survival(
        r"group must hold the label", None, [1, 2], [1, 1], group=["a", "b"]
    ),
    "events expected": _survival(r"time: there is no empirical estimate", _EVENTS, [1.0], [1]),
}
