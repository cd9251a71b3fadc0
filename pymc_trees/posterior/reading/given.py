"""Draws as users have them: a tree, a dataset, another group, chains and draws stacked."""

import inspect
from collections.abc import Callable
from functools import wraps

import numpy as np
import pandas as pd
import xarray as xr

from pymc_trees.posterior.check_draws import SAMPLE


def draws_of(idata, group: str = "posterior"):
    """A tree whose ``posterior`` is the group that was asked for, with chain and draw.

    Chains and draws that `arviz.extract` stacked come apart again; of a sample of them each is a
    draw of one chain, numbered in turn. What is no such thing is handed on as it is, to
    `check_draws`, which says what is wrong with it.
    """
    if isinstance(idata, xr.Dataset):
        return _tree(_unstacked(idata))
    children = getattr(idata, "children", {})
    if group not in children:
        if group == "posterior":
            return idata
        raise ValueError(f"idata has no group {group!r}: choose from {sorted(children)}.")
    dims = idata[group].dims
    if group == "posterior" and all(dim in dims for dim in SAMPLE):
        return idata
    return _tree(_unstacked(idata[group].to_dataset()))


def _tree(posterior: xr.Dataset) -> xr.DataTree:
    return xr.DataTree.from_dict({"posterior": posterior})


def _unstacked(ds: xr.Dataset) -> xr.Dataset:
    """The same draws with chain and draw, where a dimension holds both."""
    for dim in list(ds.dims):
        index = ds.indexes.get(dim)
        if not isinstance(index, pd.MultiIndex) or not set(SAMPLE) <= set(index.names):
            continue
        sizes = [index.get_level_values(name).nunique() for name in SAMPLE]
        if index.is_unique and len(index) == np.prod(sizes):
            return ds.unstack([dim])
        numbered = ds.drop_vars([dim, *index.names]).rename({dim: "draw"})
        return numbered.assign_coords(draw=np.arange(len(index))).expand_dims(chain=[0])
    return ds


# ----------------- Keywords of pymc-bart that have another name here, and an error that says which


RENAMED = {
    "bartrv": "idata and model come first",
    "Y": "leave it out: the model knows its response",
    "var_idx": "features=",
    "var_discrete": "leave it out: levels and up to six numbers are found in the data",
    "xs_interval": 'grid="quantile" or grid="linear"',
    "xs_values": "grid=, a number or the values themselves",
    "samples": "draws=, evenly spaced",
    "instances": "subsample=",
    "centered": "centred=",
    "random_seed": "random_state=, where rows are taken at random; draws are evenly spaced",
    "smooth": "leave it out: f has steps, and is shown with them",
    "smooth_kwargs": "leave it out: f has steps, and is shown with them",
    "ref_line": "leave it out: the picture has its own",
    "grid": "col_wrap=, the number of panels in a row",
    "sharey": 'figure_kwargs={"sharey": ...}',
    "figsize": 'figure_kwargs={"figsize": ...}',
    "ax": "leave it out: pictures are ArviZ-plots' collections, with figures of their own",
    "color_mean": "leave it out: what is drawn is in the collection's viz, to be changed there",
    "plot_kwargs": "leave it out: what is drawn is in the collection's viz, to be changed there",
    "labels": "leave it out: columns have the names of the training frame",
    "bart_var_name": "forest=",
    "to_kulprit": "vi_to_kulprit, of what compute_variable_importance returns",
}
"""What does the work here, by the keyword there. `docs/from_pymc_bart.md` has the same table."""


def renamed[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """The function, with an error for each keyword of pymc-bart that is none of its own."""
    foreign = RENAMED.keys() - inspect.signature(function).parameters

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name in foreign:
                raise TypeError(
                    f"{function.__name__} has no {name}=, a keyword of pymc-bart. Here: "
                    f"{RENAMED[name]}."
                )
        return function(*args, **kwargs)

    return checked
