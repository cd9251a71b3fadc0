"""Odd inputs of what is lost without a column: submodels, shuffled columns, permuted responses."""

from functools import cache, partial

import numpy as np
import pymc as pm
import xarray as xr

import pymc_trees as pmt
from pymc_trees.plots.importance import plot_scatter_submodels, plot_variable_importance
from pymc_trees.posterior.importance.permutation import permutation_importance
from pymc_trees.posterior.importance.selection import select_variables
from pymc_trees.posterior.importance.submodels import compute_variable_importance, vi_to_kulprit
from support.fitted import N, frame
from support.odd.answers import cached_frame, common, row
from support.odd.table import LEAF, Odd, X, Y

_importance = partial(compute_variable_importance, progressbar=False, cores=1)
_permutation = partial(permutation_importance, progressbar=False, random_state=1)


def _importance_row(refused, **given):
    return row(_importance, refused, **given)


COMPUTE_VARIABLE_IMPORTANCE = common(_importance) | {
    "X lacks a column": _importance_row("X", X=frame().drop(columns="site")),
    "X without rows": _importance_row("X", X=frame().iloc[:0]),
    "method unknown": _importance_row("method", method="forward"),
    "fixed without its method": _importance_row("fixed", fixed=1),
    "fixed missing": _importance_row("fixed", method="backward_VI"),
    "fixed all": _importance_row("fixed", method="backward_VI", fixed=3),
    "fixed negative": _importance_row("fixed", fixed=-1),
    "samples zero": _importance_row("samples", samples=0),
    "samples fraction": _importance_row("samples", samples=2.5),
    "a keyword of pymc-bart": _importance_row(TypeError("Y"), Y=[1.0]),
    "samples beyond": _importance_row(None, samples=10_000),
    "cores zero": row(partial(compute_variable_importance, progressbar=False), "cores", cores=0),
}

PERMUTATION_IMPORTANCE = common(_permutation) | {
    "X lacks a column": row(_permutation, "X", X=frame().drop(columns="site")),
    "X without rows": row(_permutation, "X", X=frame().iloc[:0]),
    "X one row": row(_permutation, None, X=frame().iloc[:1], n_repeats=2),
    "y of other rows": row(_permutation, "y", y=np.zeros(3)),
    "y a number": row(_permutation, "y", y=0.0),
    "y missing": row(_permutation, "y", y=[np.nan] * N),
    "y text": row(_permutation, "y", y=["yes"] * N),
    "metric unknown": row(_permutation, "metric", metric="log"),
    "metric of means": row(_permutation, "metric", metric=lambda y, f: 0.0),
    "n_repeats zero": row(_permutation, "n_repeats", n_repeats=0),
    "random_state text": row(
        partial(pmt.permutation_importance, progressbar=False),
        TypeError("random_state"),
        random_state="x",
    ),
    "n_repeats fraction": row(_permutation, "n_repeats", n_repeats=1.5),
}


def _declare(y):
    with pm.Model() as model:
        mu = pmt.BART("mu", X, m=2, leaf=LEAF)
        pm.Normal("y", mu, 1.0, observed=y, shape=mu.shape)
    return model


def _without_trees(y):
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), 1.0, observed=y)
    return model


def _selection(refused, declare=_declare, y=Y, **given):
    few = {"n_permutations": 2, "n_replicates": 1, "cores": 1, "progressbar": False}
    short = {"sample_kwargs": {"tune": 2, "draws": 3}, "random_seed": 1}

    def call():
        return select_variables(declare, y, **few | short | given)

    return Odd(call, refused, holds=lambda found: isinstance(found, xr.Dataset))


SELECT_VARIABLES = {
    "declare a model": _selection(TypeError("declare"), declare=_declare(Y)),
    "declare no model": _selection(TypeError("declare"), declare=lambda y: y),
    "declare no forest": _selection("declare", declare=_without_trees),
    "y a number": _selection("y", y=1.0),
    "y one row": _selection("y", y=[1.0]),
    "y a list": _selection(None, y=list(Y)),
    "n_permutations one": _selection("n_permutations", n_permutations=1),
    "n_replicates zero": _selection("n_replicates", n_replicates=0),
    "alpha zero": _selection("alpha", alpha=0),
    "alpha NaN": _selection("alpha", alpha=np.nan),
    "alpha text": _selection("alpha", alpha="5%"),
    "forest unknown": _selection("forest", forest="f"),
    "cores zero": _selection("cores", cores=0),
    "random_seed text": _selection(TypeError("random_seed"), random_seed="a"),
    "seed twice": _selection("random_seed", sample_kwargs={"random_seed": 1}),
}


@cache
def _submodels():
    model, idata = cached_frame()
    return _importance(idata, model)


def _picture(function, refused, found=_submodels, **given):
    return Odd(lambda: function(found(), **{"backend": "none"} | given), refused)


def _of_submodels(function):
    """What every picture of submodels refuses."""
    return {
        "None": _picture(function, "importance", found=lambda: None),
        "draws": _picture(function, "importance", found=lambda: cached_frame()[1]),
        "another Dataset": _picture(function, "importance", found=xr.Dataset),
        "submodel zero": _picture(function, "submodels", submodels=[0]),
        "submodel beyond": _picture(function, "submodels", submodels=[4]),
        "no submodels": _picture(function, "submodels", submodels=[]),
        "one submodel": _picture(function, None, submodels=2),
        "as it is": _picture(function, None),
    }


PLOT_SCATTER_SUBMODELS = _of_submodels(plot_scatter_submodels) | {
    "func text": _picture(plot_scatter_submodels, "func", func="exp"),
}
PLOT_VARIABLE_IMPORTANCE = _of_submodels(plot_variable_importance) | {
    "ci_prob": _picture(plot_variable_importance, "ci_prob", ci_prob=2),
}

VI_TO_KULPRIT = {
    "None": Odd(lambda: vi_to_kulprit(None), "importance"),
    "draws": Odd(lambda: vi_to_kulprit(cached_frame()[1]), "importance"),
    "another Dataset": Odd(lambda: vi_to_kulprit(xr.Dataset()), "importance"),
    "as it is": Odd(lambda: vi_to_kulprit(_submodels()), holds=lambda lists: len(lists) == 4),
}
