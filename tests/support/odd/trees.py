"""Odd inputs of what is read off trees: counts of columns, trees in words, summaries."""

from functools import cache

import pymc as pm
import xarray as xr

import pymc_trees as pmt
from support.odd.answers import cached_frame, cached_two, common, prior_only, row
from support.odd.table import Odd, X, Y


@cache
def _one_tree():
    with pm.Model() as model:
        pmt.DecisionTree("mu", X, Y)
        prior = pm.sample_prior_predictive(3, random_seed=1)
    return model, xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})


@cache
def soft_draws():
    """A model of a soft tree, and draws of its prior."""
    with pm.Model() as model:
        pmt.SoftDecisionTree("mu", X)
        prior = pm.sample_prior_predictive(2, random_seed=1)
    return model, xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})


def _of_forests(function, of=cached_frame):
    """What is refused of draws and of the name of a forest."""

    def made(*args, refused, change=lambda d: d, **given):
        def call():
            model, idata = of()
            return function(change(idata), model, *args, **given)

        return Odd(call, refused)

    def several():
        model, idata = cached_two()
        return function(idata, model)

    def unknown():
        model, idata = cached_two()
        return function(idata, model, forest="mu")

    return {
        "None": made(refused=TypeError("idata"), change=lambda d: None),
        "no posterior": made(refused="idata", change=lambda d: xr.DataTree()),
        "no model": Odd(lambda: function(of()[1], None), TypeError("model")),
        "prior only": made(refused="posterior", change=prior_only),
        "model a variable": Odd(lambda: function(of()[1], of()[0]["mu"]), TypeError("model")),
        "a soft tree": Odd(lambda: function(*reversed(soft_draws())), "SoftDecisionTree"),
        "forest missing": Odd(several, "forest"),
        "forest unknown": Odd(unknown, "forest"),
        "as it is": made(refused=None),
    }


def _asked(function, refused, of=cached_frame, **given):
    def call():
        model, idata = of()
        return function(idata, model, **given)

    return Odd(call, refused)


VARIABLE_INCLUSION = _of_forests(pmt.get_variable_inclusion)
INTERACTION_INCLUSION = _of_forests(pmt.get_interaction_inclusion)
TREE_TEXT = _of_forests(pmt.tree_text) | {
    "chain beyond": _asked(pmt.tree_text, "chain", chain=2),
    "chain far below": _asked(pmt.tree_text, "chain", chain=-3),
    "draw beyond": _asked(pmt.tree_text, "draw", draw=4),
    "draw fraction": _asked(pmt.tree_text, "draw", draw=0.5),
    "tree beyond": _asked(pmt.tree_text, "tree", tree=4),
    "tree text": _asked(pmt.tree_text, "tree", tree="all"),
    "format": _asked(pmt.tree_text, "format", format="svg"),
}
SUMMARISE_TREES = _of_forests(pmt.summarise_trees, _one_tree) | {
    "a sum of trees": _asked(pmt.summarise_trees, "shap_values"),
    "by": _asked(pmt.summarise_trees, "by", _one_tree, by="cuts"),
    "top zero": _asked(pmt.summarise_trees, "top", _one_tree, top=0),
    "tree beyond": _asked(pmt.summarise_trees, "tree", _one_tree, tree=1),
    "top beyond": _asked(pmt.summarise_trees, None, _one_tree, top=99),
}
SUMMARY_OF_FUNCTION = common(pmt.summarise_function) | {
    "ci_prob zero": row(pmt.summarise_function, "ci_prob", ci_prob=0),
    "ci_prob text": row(pmt.summarise_function, "ci_prob", ci_prob="95%"),
    "ci_prob percent": row(pmt.summarise_function, "ci_prob", ci_prob=95),
}


def _diagnosed(change):
    def call():
        model, idata = cached_frame()
        return pmt.diagnose(change(idata), model, progressbar=False)

    return Odd(call, holds=lambda found: found.pool.verdict == "short" and str(found))


DIAGNOSE = common(pmt.diagnose) | {
    "one chain": _diagnosed(change=lambda d: d.isel(chain=[0])),
    "one draw": _diagnosed(change=lambda d: d.isel(draw=[0])),
    "rows text": row(pmt.diagnose, "rows", rows="all"),
}
