"""Remedies of messages about draws themselves, and about pictures of what they say."""

import matplotlib as mpl
import numpy as np
import pymc as pm
import xarray as xr

import pymc_trees as pmt
from pymc_trees import survival
from support.fitted import N, frame
from support.odd import importance as odd_importance
from support.odd import pictures as odd_pictures
from support.odd import runs as odd_runs
from support.odd import tree_pictures as odd_trees_drawn
from support.odd.table import X, Y
from support.remedies.answers import asked
from support.remedies.table import remedy

mpl.use("Agg")


def on_draws(change, model=None):
    """What checks changed draws of a tree."""

    def call():
        own, idata = odd_runs.drawn()
        return pmt.check_draws(change(idata), model or own) is None

    return call


def _as_sampled(change=lambda p: p):
    return on_draws(lambda d: odd_runs._group(d, change))


DRAWS = [
    remedy(
        "trees in another precision are different trees. Save and keep it as float64",
        odd_runs.CHECK_DRAWS["single precision"],
        _as_sampled(),
    ),
    remedy(
        "Rebuild it with the original settings",
        odd_runs.CHECK_DRAWS["fields cut"],
        on_draws(lambda d: d),
    ),
    remedy(
        "Rebuild the model with the original settings and the training X, then pm.set_data the new",
        lambda: _check_at(X[::-1]),
        lambda: _check_at(X),
    ),
    remedy(
        "idata has no posterior group: pass the result of pm.sample()",
        odd_runs.CHECK_DRAWS["no posterior"],
        on_draws(lambda d: d),
    ),
    remedy(
        "Keep it among var_names of pm.sample (and in the file you saved)",
        odd_runs.CHECK_DRAWS["no forest"],
        on_draws(lambda d: odd_runs._group(d, lambda p: p[["mu_forest"]])),
    ),
    remedy(
        "has its chains and draws stacked into …: pass the unchanged result of pm.sample(), or",
        odd_runs.CHECK_DRAWS["stacked"],
        _as_sampled(),
        _as_sampled(lambda p: p.stack(sample=("chain", "draw")).unstack("sample")),
    ),
    remedy(
        "Select with a list, which keeps the dimension",
        odd_runs.CHECK_DRAWS["one chain picked"],
        _as_sampled(lambda p: p.sel(chain=[0])),
        _as_sampled(lambda p: p.isel(draw=[0])),
    ),
    remedy(
        "but draws of a forest have (chain, draw, rows, fields): pass the unchanged result",
        _as_sampled(lambda p: p.isel(mu_forest_dim_0=0)),
        _as_sampled(),
    ),
    remedy(
        "which … depends on: keep them among var_names of pm.sample",
        lambda: _left_out(True),
        lambda: _left_out(False),
    ),
    remedy(
        "holds Python objects, which netCDF cannot store: remove it with idata[group].dataset",
        odd_runs.SAVE["objects"],
        lambda: _saved(
            xr.DataTree.from_dict(
                {"sample_stats": odd_runs.OBJECTS["sample_stats"].dataset.drop_vars("warning")}
            )
        ),
    ),
    remedy(
        "is not a DataTree: give the result of pm.sample",
        odd_runs.SAVE["idata None"],
        lambda: _saved(odd_runs.DRAWS),
    ),
    remedy("give the name of a file", odd_runs.SAVE["path None"], lambda: _saved(odd_runs.DRAWS)),
    remedy(
        "is a folder: add the name of a file",
        odd_runs.SAVE["a folder"],
        lambda: _saved(odd_runs.DRAWS),
    ),
]


def _check_at(rows):
    model, idata = odd_runs.drawn()
    with pm.Model() as other:
        mu = pmt.DecisionTree("mu", pm.Data("X", rows), Y, max_nodes=39)
        pm.Normal("y", mu, 0.5, observed=Y, shape=mu.shape)
        pm.set_data({"X": X[:3]})
    return pmt.check_draws(idata, other) is None


def _left_out(without):
    """Curves of a model whose law has a parameter beside the forest."""
    time = np.arange(1.0, N + 1)
    model = survival.accelerated_failure_time(frame(), time, np.ones(N), m=2)
    idata = pm.sample_prior_predictive(2, model=model, random_seed=1)
    if without:
        idata["prior"] = idata["prior"].to_dataset().drop_vars("sigma")
    return survival.survival_function(idata, model, group="prior", progressbar=False)


def _saved(idata):
    from pathlib import Path
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        pmt.save(idata, Path(folder) / "draws.nc")
        return (Path(folder) / "draws.nc").exists()


def _pair(features, **given):
    return asked(pmt.plot_pdp, features, backend="none", **given)


def _predicted():
    return odd_runs._predictions()


PICTURES = [
    remedy(
        "overlap: give the Dataset returned by pymc_trees.causal.overlap",
        odd_pictures.PLOT_OVERLAP["propensities"],
        odd_pictures.PLOT_OVERLAP["one bin"].call,
    ),
    remedy(
        "diagnosis: give the result of pymc_trees.diagnose, of draws of two chains or more",
        odd_pictures.PLOT_DIAGNOSIS["one chain"],
        odd_pictures.PLOT_DIAGNOSIS["two chains"].call,
    ),
    remedy(
        "for which R-hat is undefined: sample two or more",
        odd_pictures.PLOT_CONVERGENCE["one chain"],
        asked(pmt.plot_convergence, backend="none"),
    ),
    remedy(
        "cannot be centred: leave it out, or give a list for one panel per column",
        odd_pictures.PLOT_PDP["a pair, centred"],
        _pair((0, 2)),
        _pair([0, 2], centred=True),
    ),
    remedy(
        "which only accumulated_effects supports; give a list for one panel per column",
        odd_pictures.PLOT_ALE["a pair"],
        asked(pmt.plot_ale, [0, 2], backend="none"),
        asked(pmt.accumulated_effects, (0, 2)),
    ),
    remedy(
        "is empty: give at least one column",
        odd_pictures.PLOT_PDP["no features"],
        _pair(["age"]),
    ),
    remedy(
        "submodels=…: choose from",
        odd_importance.PLOT_SCATTER_SUBMODELS["submodel zero"],
        odd_importance._picture(
            odd_importance.plot_scatter_submodels, None, submodels=[1, 2, 3]
        ).call,
    ),
    remedy(
        "axes: … for … rows; give one for each row, or leave axes out",
        odd_runs.PLOT_DENSITIES["one axis for two rows"],
        lambda: pmt.plot_predictive_densities(
            _predicted(), [0, 1], axes=mpl.figure.Figure().subplots(1, 2)
        ),
        lambda: pmt.plot_predictive_densities(_predicted(), [0, 1]),
    ),
    remedy(
        "in a group predictions or posterior_predictive: pass the result of pm.sample_posterior",
        odd_runs.PLOT_DENSITIES["no group"],
        lambda: pmt.plot_predictive_densities(_predicted(), [0]),
    ),
    remedy(
        "rows=…: give a list of at least one of the … rows",
        odd_runs.PLOT_DENSITIES["no rows"],
        lambda: pmt.plot_predictive_densities(_predicted(), [0]),
    ),
    remedy(
        "explanation holds interactions: pass a result of shap_values",
        odd_pictures.PLOT_SHAP["interactions"],
        odd_pictures.PLOT_SHAP["one row"].call,
    ),
    remedy(
        "idata has no group 'topologies': pass the result of sample_dcc",
        odd_runs.PLOT_TOPOLOGIES["no group"],
        odd_runs.PLOT_TOPOLOGIES["more than there are"].call,
    ),
    remedy(
        "there is no empirical estimate to compare expected numbers of events with; leave time out",
        odd_pictures.PLOT_SURVIVAL["events expected"],
        lambda: pmt.plot_survival(odd_pictures._EVENTS, backend="none"),
    ),
    remedy(
        "time and event have shapes … and …: give one of each for every row",
        odd_pictures.PLOT_SURVIVAL["of other lengths"],
        lambda: pmt.plot_survival(odd_pictures._curves(), [1.0, 2.0], [1, 0], backend="none"),
    ),
    remedy(
        "curves: give the Dataset that survival_function, cumulative_incidence or expected_events",
        odd_pictures.PLOT_SURVIVAL["an array"],
        lambda: pmt.plot_survival(odd_pictures._curves(), backend="none"),
    ),
    remedy(
        "choose at most …, as in curves.isel",
        odd_pictures.PLOT_SURVIVAL["too many"],
        lambda: pmt.plot_survival(
            odd_pictures._curves(row=range(11)).isel(row=[0, 5]), backend="none"
        ),
    ),
    remedy(
        "tree=None: give one number below …, or use tree_text",
        odd_trees_drawn.PLOT_TREE["tree None"],
        asked(pmt.plot_tree, tree=0, backend="none"),
        asked(pmt.tree_text, tree=None),
    ),
    remedy(
        "ax belongs to matplotlib; leave one of them out",
        asked(pmt.plot_tree, tree=0, ax=mpl.figure.Figure().subplots(), backend="plotly"),
        asked(pmt.plot_tree, tree=0, ax=mpl.figure.Figure().subplots()),
        asked(pmt.plot_tree, tree=0, backend="plotly"),
    ),
]
