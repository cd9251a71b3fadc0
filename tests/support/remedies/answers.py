"""Remedies of messages about what is asked of draws."""

from unittest.mock import patch

import matplotlib as mpl
import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr

import pymc_trees as pmt
from pymc_trees.posterior import draws
from pymc_trees.posterior.explain import interactions, shapley
from support.fitted import N, frame
from support.odd import answers as odd
from support.odd import explain as odd_explain
from support.odd import importance as odd_importance
from support.odd import trees as odd_trees
from support.odd.answers import cached_frame, cached_two
from support.odd.table import LEAF, X, Y
from support.remedies.table import remedy

mpl.use("Agg")
QUIET = {"progressbar": False, "cores": 1}
WITH_Z = pd.DataFrame(X, columns=["a", "b"]).assign(z=Y)


def asked(function, *args, of=cached_frame, change=lambda d: d, **given):
    """What asks a small fitted model."""

    def call():
        model, idata = of()
        return function(change(idata), model, *args, **given)

    return call


def _with_offset():
    """A model whose mean has an offset beside the forest."""
    X = frame()
    with pm.Model() as model:
        mu = pmt.BART("mu", X, m=4, leaf=LEAF)
        mean = pm.Deterministic("mean", mu + pm.Data("offset", np.arange(float(N))))
        pm.Normal("y", mean, 0.5, observed=X.dose.to_numpy(), shape=mu.shape)
        prior = pm.sample_prior_predictive(3, random_seed=1)
    return model, xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})


def _offset_added():
    """f at other rows, and their offset, are the mean at these rows."""
    model, idata = _with_offset()
    f = pmt.predictions(idata, model, frame(), var_name="mu")["prediction"]
    expected = idata["posterior"]["mean"].to_numpy()
    return np.allclose(f.to_numpy() + np.arange(float(N)), expected)


def _prior_of(declare):
    with pm.Model() as model:
        declare()
        prior = pm.sample_prior_predictive(3, random_seed=1)
    return model, xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})


def _centred():
    def declare():
        mu = pmt.BART("mu", frame(), m=4, leaf=LEAF)
        pm.Deterministic("centred", mu - mu.mean())

    return _prior_of(declare)


def _at_two_inputs():
    def declare():
        f = pmt.BART("f", X, m=2, leaf=LEAF)
        g = pmt.BART("g", X[::-1], m=2, leaf=LEAF)
        pm.Deterministic("total", f + g)

    return _prior_of(declare)


def _at_two_frames():
    def declare():
        f = pmt.BART("f", pd.DataFrame(X, columns=["a", "b"]), m=2, leaf=LEAF)
        g = pmt.BART("g", pd.DataFrame(X[::-1], columns=["c", "d"]), m=2, leaf=LEAF)
        pm.Deterministic("total", f + g)

    return _prior_of(declare)


def _beside():
    """A function that uses X beside the trees."""

    def declare():
        data = pm.Data("X", X)
        mu = pmt.BART("mu", data, m=2, leaf=LEAF)
        pm.Deterministic("slope", mu + data[:, 0])

    return _prior_of(declare)


def _soft_sum():
    return _prior_of(lambda: pmt.SoftBART("mu", X, Y, m=2, max_nodes=80))


def _slopes_of_arm(kind, **given):
    """Of data beside X of some type."""

    def declare():
        mu = pmt.BART("mu", X, m=2, leaf=LEAF)
        arm = pm.Data("arm", np.resize([0, 1, 1], len(X)).astype(kind))
        pm.Deterministic("of_arm", mu + arm)

    model, idata = _prior_of(declare)
    return pmt.slopes(idata, model, "arm", var_name="of_arm", progressbar=False, **given)


def _with_random_column():
    def declare():
        z = pm.Normal("z", shape=len(X))
        pmt.BART("f", pmt.with_columns(pd.DataFrame(X, columns=["a", "b"]), z=z), m=2, leaf=LEAF)

    return _prior_of(declare)


def _soft_one():
    return _prior_of(lambda: pmt.SoftDecisionTree("mu", X, Y))


def _whole_numbers():
    return _prior_of(lambda: pmt.BART("mu", pd.DataFrame(X, columns=[3, "row"]), m=2, leaf=LEAF))


QUESTIONS = [
    remedy(
        "Give other rows by keyword, X=, and a function of the model by name, var_name='mu'",
        lambda: pmt.plot_pdp(cached_frame()[1], frame(), backend="none"),
        asked(pmt.plot_pdp, X=frame(), backend="none"),
        asked(pmt.plot_pdp, var_name="mu", backend="none"),
    ),
    remedy(
        "choose from …, or give a function of the values after and before",
        odd.COMPARISONS["comparison"],
        asked(pmt.comparisons, comparison="difference"),
        asked(pmt.comparisons, comparison="ratio"),
        asked(pmt.comparisons, comparison=lambda after, before: after - before),
    ),
    remedy(
        "variables: … for the column …: give a sequence of at least two values",
        odd.COMPARISONS["text"],
        asked(pmt.comparisons, variables={"age": [40, 60]}),
    ),
    remedy(
        "is not a step: give a finite number, or a sequence of at least two values",
        odd.COMPARISONS["a step NaN"],
        asked(pmt.comparisons, variables={"age": 1.0}),
        asked(pmt.comparisons, variables={"age": (40, 60)}),
    ),
    remedy(
        "is compared at …: give at least two values",
        odd.COMPARISONS["one value"],
        asked(pmt.comparisons, variables={"age": [1, 2]}),
    ),
    remedy(
        "a tuple is a pair of columns: give a tuple of two",
        odd.PARTIAL_DEPENDENCE["three columns"],
        asked(pmt.partial_dependence, "age"),
        asked(pmt.partial_dependence, ("age", "dose"), grid=[1.0]),
    ),
    remedy(
        "give different columns, each once",
        odd.PARTIAL_DEPENDENCE["one column twice"],
        asked(pmt.partial_dependence, ("age", "dose"), grid=[1.0]),
    ),
    remedy(
        "Check that func is elementwise and returns finite numbers",
        asked(pmt.shap_values, of=odd_trees._one_tree, func=lambda f: f * np.nan, **QUIET),
        asked(pmt.shap_values, of=odd_trees._one_tree, func=np.exp, **QUIET),
    ),
    remedy(
        "there is no closed form. Use partial_dependence or comparisons",
        asked(pmt.sobol_indices, of=_soft_one, **QUIET),
        asked(pmt.partial_dependence, of=_soft_one),
        asked(pmt.comparisons, of=_soft_one),
    ),
    remedy(
        "with background= are available. Use these, partial_dependence or comparisons",
        asked(pmt.sobol_indices, of=_soft_sum, **QUIET),
        asked(pmt.shap_values, of=_soft_sum, background=5, **QUIET),
        asked(pmt.shap_interactions, of=_soft_sum, background=5, **QUIET),
        asked(pmt.partial_dependence, of=_soft_sum),
        asked(pmt.comparisons, of=_soft_sum),
    ),
    remedy(
        "uses columns of X outside the splits of its trees: choose a function of trees alone by",
        asked(pmt.sobol_indices, of=_beside, var_name="slope", **QUIET),
        asked(pmt.sobol_indices, of=_beside, var_name="mu", **QUIET),
    ),
    remedy(
        "is not a sum of trees: leave func out, or choose the function inside it by var_name",
        odd_explain.SHAP_INTERACTIONS["a curved function"],
        asked(pmt.shap_interactions, of=cached_two, var_name="g", **QUIET),
    ),
    remedy(
        "is not a sum of trees of one X, and has no path-dependent values: give background=",
        odd_explain.SHAP_VALUES["a curved function"],
        asked(pmt.shap_values, of=cached_two, var_name="rate", background=3, **QUIET),
        asked(pmt.shap_values, of=cached_two, var_name="rate", background=X[:3, :2], **QUIET),
        asked(pmt.shap_values, of=cached_two, var_name="g", **QUIET),
    ),
    remedy(
        "explanation has several outputs, along …: choose one, as in",
        odd_explain.TO_SHAP["two outputs"],
        lambda: pmt.to_shap(odd_explain._of_two_outputs().isel(kind=0)),
    ),
    remedy(
        "give different columns, each once",
        odd_explain.INTERACTION_STRENGTH["features twice"],
        asked(pmt.interaction_strength, features=["age", "dose"], **QUIET),
    ),
    remedy(
        "give background=, either rows or a number of rows such as background=100",
        asked(pmt.shap_values, of=_soft_sum, **QUIET),
        asked(pmt.shap_values, of=_soft_sum, background=X[:3], **QUIET),
        asked(pmt.shap_values, of=_soft_sum, background=100, **QUIET),
    ),
    remedy(
        "path-dependent values are not defined: give background=, a frame with all columns",
        asked(pmt.shap_values, X=WITH_Z, of=_with_random_column, **QUIET),
        asked(pmt.shap_values, X=WITH_Z, of=_with_random_column, background=WITH_Z[:3], **QUIET),
    ),
    remedy(
        "no column can be left out. Use permutation_importance",
        asked(pmt.compute_variable_importance, of=_soft_sum, **QUIET),
        asked(pmt.permutation_importance, of=_soft_sum, progressbar=False),
    ),
    remedy(
        "choose a function of trees alone by var_name, or use permutation_importance",
        asked(pmt.compute_variable_importance, of=_beside, var_name="slope", **QUIET),
        asked(pmt.compute_variable_importance, of=_beside, var_name="mu", **QUIET),
        asked(pmt.permutation_importance, of=_beside, var_name="slope", progressbar=False),
    ),
    remedy(
        "y must hold numbers only: encode labels as numbers",
        odd_importance.PERMUTATION_IMPORTANCE["y text"],
        asked(pmt.permutation_importance, frame(), np.arange(N) % 2, progressbar=False),
    ),
    remedy(
        "leave those rows out of X and y",
        odd_importance.PERMUTATION_IMPORTANCE["y missing"],
        asked(pmt.permutation_importance, frame()[1:], np.zeros(N - 1), progressbar=False),
    ),
    remedy(
        "fixed=…: with method='backward_VI', give 1 to",
        odd_importance.COMPUTE_VARIABLE_IMPORTANCE["fixed missing"],
        asked(pmt.compute_variable_importance, method="backward_VI", fixed=1, **QUIET),
    ),
    remedy(
        "y has the shape …: give the responses of at least two rows",
        odd_importance.SELECT_VARIABLES["y one row"],
        odd_importance.SELECT_VARIABLES["y a list"].call,
        full=True,
    ),
    remedy(
        "has forests with different columns: choose from",
        lambda: _inclusion_of_two("total"),
        lambda: _inclusion_of_two("f_forest"),
    ),
    remedy(
        "or the same level twice; give different levels",
        odd.ACCUMULATED_EFFECTS["grid a level twice"],
        asked(pmt.accumulated_effects, "site", grid=["a", "b"]),
    ),
    remedy(
        "is evaluated at no rows: give … at least one row",
        odd.PREDICTIONS["no rows"],
        asked(pmt.predictions, frame()[:1]),
    ),
    remedy(
        "evaluates forests at different X: use its functions one by one",
        asked(pmt.permutation_importance, X, Y, of=_at_two_inputs, var_name="total"),
        asked(pmt.permutation_importance, X, Y, of=_at_two_inputs, var_name="f"),
        asked(pmt.permutation_importance, X, Y, of=_at_two_inputs, var_name="g"),
    ),
    remedy(
        "give frames, so that their columns have names, or use its functions one by one",
        asked(pmt.predictions, of=_at_two_inputs, var_name="total"),
        asked(pmt.predictions, of=_at_two_frames, var_name="total"),
        asked(pmt.predictions, X, of=_at_two_inputs, var_name="f"),
        asked(pmt.predictions, X, of=_at_two_inputs, var_name="g"),
    ),
    remedy(
        "give the name as text",
        asked(pmt.partial_dependence, 3, of=_whole_numbers),
        asked(pmt.partial_dependence, "3", of=_whole_numbers),
    ),
    remedy(
        "grid has …, which features does not: give values of",
        odd.PARTIAL_DEPENDENCE["grid elsewhere"],
        asked(pmt.partial_dependence, "age", grid={"age": [40, 60]}),
    ),
    remedy(
        "grid=…: give values, their number, or one of",
        odd.PARTIAL_DEPENDENCE["grid a bool"],
        *(asked(pmt.partial_dependence, "age", grid=g) for g in ([40.0], 3, "quantile", "linear")),
    ),
    remedy(
        "grid=…: give at least one value",
        odd.PARTIAL_DEPENDENCE["grid zero"],
        asked(pmt.partial_dependence, "age", grid=1),
    ),
    remedy(
        "is not a value of the column …: give a finite number, or None for a missing cell",
        odd.PARTIAL_DEPENDENCE["grid infinite"],
        asked(pmt.partial_dependence, "age", grid=[50.0]),
        asked(pmt.partial_dependence, "age", grid=[None]),
    ),
    remedy(
        "is not a level of the column …: choose from …, or None for a missing cell",
        odd.PARTIAL_DEPENDENCE["grid level"],
        asked(pmt.partial_dependence, "site", grid=["a"]),
        asked(pmt.partial_dependence, "site", grid=[None]),
    ),
    remedy(
        "is not a column of X: choose from",
        odd.PARTIAL_DEPENDENCE["features unknown"],
        asked(pmt.partial_dependence, "age"),
    ),
    remedy(
        "The model has no forest: declare one by BART or DecisionTree",
        lambda: pmt.tree_text(cached_frame()[1], pm.Model()),
        asked(pmt.tree_text),
    ),
    remedy(
        "The model has the forests …: choose one by forest",
        odd_trees.TREE_TEXT["forest missing"],
        asked(pmt.tree_text, of=cached_two, forest="g_forest"),
    ),
    remedy(
        "is not one forest: choose from",
        odd_trees.TREE_TEXT["forest unknown"],
        asked(pmt.tree_text, of=cached_two, forest="g_forest"),
    ),
    remedy(
        "Draw it with plot_soft_tree; partial_dependence and permutation_importance show which",
        odd_trees.TREE_TEXT["a soft tree"],
        asked(pmt.plot_soft_tree, of=_soft_one),
        asked(pmt.partial_dependence, of=_soft_one),
        asked(pmt.permutation_importance, of=_soft_one, progressbar=False),
    ),
    remedy(
        "The model has the functions …: choose one by var_name",
        odd.PREDICTIONS["var_name missing"],
        asked(pmt.predictions, of=cached_two, var_name="g"),
    ),
    remedy(
        "is not a function of trees: choose from",
        odd.PREDICTIONS["var_name unknown"],
        asked(pmt.predictions, var_name="mu"),
    ),
    remedy(
        "The model has no function of trees: declare one by BART",
        lambda: pmt.predictions(cached_frame()[1], pm.Model()),
        asked(pmt.predictions),
    ),
    remedy(
        "idata has no group …: choose from",
        odd.PARTIAL_DEPENDENCE["group missing"],
        asked(pmt.partial_dependence, group="posterior"),
    ),
    remedy(
        "so it is not defined for a single row: use the function of trees inside it",
        asked(pmt.predictions, frame(), of=_centred, var_name="centred"),
        asked(pmt.predictions, frame(), of=_centred, var_name="mu"),
    ),
    remedy(
        "its other inputs are unknown at other rows. Use the function of trees inside it",
        asked(pmt.permutation_importance, frame(), Y[:N], of=_with_offset, var_name="mean"),
        asked(pmt.predictions, frame(), of=_with_offset, var_name="mu"),
        _offset_added,
    ),
    remedy(
        "has levels and therefore no slope; use comparisons()",
        odd.SLOPES["of levels"],
        asked(pmt.comparisons, "site"),
    ),
    remedy(
        "has length …; give a positive step",
        odd.SLOPES["step zero"],
        asked(pmt.slopes, "age", step=1.0),
    ),
    remedy(
        "give an even number, such as step=2, or declare it as floats",
        lambda: _slopes_of_arm(int),
        lambda: _slopes_of_arm(int, step=2),
        lambda: _slopes_of_arm(float),
    ),
    remedy(
        "give an int, a number of values, or a list of values",
        odd.PARTIAL_DEPENDENCE["grid a float"],
        asked(pmt.partial_dependence, grid=5),
        asked(pmt.partial_dependence, grid=[5.0]),
    ),
    remedy(
        "use shap_values or partial_dependence, or choose one with tree",
        odd_trees.SUMMARISE_TREES["a sum of trees"],
        asked(pmt.shap_values, **QUIET),
        asked(pmt.partial_dependence),
        asked(pmt.summarise_trees, tree=0),
    ),
]


def with_room(of, largest, call):
    """A call where answers may take so many bytes."""

    def limited():
        with patch.object(of, "LARGEST", largest):
            return call()

    return limited


LITTLE = 4000
"""Bytes for which one column at all rows has room, and two rows with all columns."""
_whole = {"kind": "individual"}
QUESTIONS += [
    remedy(
        "the result would have … numbers, … GB; reduce it by",
        with_room(draws, 5000, asked(pmt.partial_dependence, "age", **_whole)),
        with_room(draws, 5000, asked(pmt.partial_dependence, "age", subsample=2, **_whole)),
        with_room(draws, 5000, asked(pmt.partial_dependence, "age", grid=2, **_whole)),
        with_room(
            draws,
            5000,
            asked(
                pmt.partial_dependence,
                "age",
                change=lambda idata: idata.isel(draw=slice(None, None, 10)),
                **_whole,
            ),
        ),
    ),
    remedy(
        "choose fewer columns with features, or fewer rows with subsample",
        with_room(interactions, LITTLE, asked(pmt.interaction_strength, **QUIET)),
        with_room(interactions, LITTLE, asked(pmt.interaction_strength, features=["age"], **QUIET)),
        with_room(interactions, LITTLE, asked(pmt.interaction_strength, subsample=2, **QUIET)),
    ),
    remedy(
        "whose values fill half a gigabyte: set draws, or give fewer rows",
        with_room(shapley, 1000, asked(pmt.shap_values, **QUIET)),
        with_room(shapley, 1000, asked(pmt.shap_values, draws=2, **QUIET)),
        with_room(shapley, 1000, asked(pmt.shap_values, frame()[:2], **QUIET)),
    ),
]


def _inclusion_of_two(forest):
    def declare():
        f = pmt.BART("f", X, m=2, leaf=LEAF)
        pm.Deterministic("total", f + pmt.BART("g", X[:, :1], m=2, leaf=LEAF))

    model, idata = _prior_of(declare)
    return pmt.get_variable_inclusion(idata, model, forest=forest)
