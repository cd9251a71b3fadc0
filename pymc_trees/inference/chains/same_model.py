"""Whether a model is the one that chains were drawn from, by its data and the trees it can read."""

from collections.abc import Sequence

import numpy as np
import pymc as pm
import pymc.backends.arviz as backend
import xarray as xr

from pymc_trees.distributions.tree_variable import tree_variables
from pymc_trees.inference.chains.left import Left


def check_data(idata: xr.DataTree, model: pm.Model) -> None:
    """Refuse a model whose data are not those stored with the draws."""
    now = {
        "observed_data": backend.find_observations(model),
        "constant_data": backend.find_constants(model),
    }
    changed = [
        name
        for group, found in now.items()
        for name, value in found.items()
        if group in idata.children
        and name in idata[group].data_vars
        and not _are_equal(value, idata[group][name].to_numpy())
    ]
    if changed:
        raise ValueError(
            f"idata: its chains were drawn with other data: {changed} of the model differ. Set the "
            "data back with pm.set_data, or sample the new model from the beginning."
        )


def _are_equal(found, stored: np.ndarray) -> bool:
    found = np.asarray(found)
    if found.shape != stored.shape:
        return False
    has_nan = found.dtype.kind in "fc" and stored.dtype.kind in "fc"
    return np.array_equal(found, stored, equal_nan=has_nan)


def check_trees(left: Sequence[Left], model: pm.Model) -> None:
    """Refuse a model whose trees are declared otherwise than those that chains stopped with."""
    for tree in tree_variables(model):
        name = model.rvs_to_values[tree.rv].name
        values = [np.asarray(one.point[name]) for one in left]
        if not all(v.shape == tree.shape and tree.is_intact(v) for v in values):
            raise ValueError(
                f"idata: its chains stopped at trees of another declaration than {tree.name}: with "
                "other inputs, leaves or sizes. Declare the model as it was, or sample the new one "
                "from the beginning."
            )
