"""Sampler statistics with one number per column, with this dimension named.

PyMC calls the dimension of a vector statistic by the statistic's name and a number.
"""

import re

import pymc.sampling.mcmc
import xarray as xr

from pymc_trees.distributions.data.variables import schema_of
from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.ops.soft_forest_rv import is_soft_forest
from pymc_trees.hooks.wrap import wrap


def name_columns() -> None:
    """Name the dimension ``column``, or ``column_{forest}``, in results of `pymc.sample`."""
    wrap([pymc.sampling.mcmc], "_sample_return", _sample_return)


def _sample_return(original, *args, **kwargs):
    found = original(*args, **kwargs)
    free = kwargs["model"].free_RVs
    forests = {rv.name: rv for rv in free if is_forest(rv) or is_soft_forest(rv)}
    if forests and isinstance(found, xr.DataTree):
        for group in ("sample_stats", "warmup_sample_stats"):
            if group in found.children:
                found[group].dataset = _named(found[group].to_dataset(), forests)
    return found


def _named(stats: xr.Dataset, forests: dict) -> xr.Dataset:
    for dim in list(stats.dims):
        parts = re.fullmatch(r"variable_inclusion(_.+)?_dim_0", str(dim))
        if parts is None:
            continue
        ending = parts[1] or ""
        forest = forests.get(ending[1:]) if ending else next(iter(forests.values()))
        stats = stats.rename({dim: f"column{ending}"})
        names = getattr(schema_of(forest), "names", None)  # of a frame
        if names is not None:
            stats = stats.assign_coords({f"column{ending}": list(names)})
    return stats
