"""Draws as users have them: a tree, a dataset, another group, chains and draws stacked."""

import numpy as np
import pandas as pd
import xarray as xr

from pymc_trees.posterior.check.check_draws import SAMPLE


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
