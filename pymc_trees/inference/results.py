"""Results as those of `pymc.sample`, from points that were not drawn by it."""

import time

import arviz_base
import numpy as np
import pymc as pm
import xarray as xr
from pymc.backends.arviz import (
    coords_and_dims_for_inferencedata,
    find_constants,
    find_observations,
)

from pymc_trees._version import __version__
from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.posterior.declarations import GROUP, declared_group


def record_points(model: pm.Model, points: np.ndarray, var_names=None) -> dict[str, np.ndarray]:
    """Evaluate free variables and Deterministics at points, by name.

    Parameters
    ----------
    model : pymc.Model
        The model.
    points : (chains, draws) array of dict
        Values by the names of value variables.
    var_names : sequence of str, optional
        Default all.

    Returns
    -------
    dict of (chains, draws, ...) arrays
    """
    variables = [v for v in model.unobserved_value_vars if v.name in model.named_vars]
    if var_names is not None:
        variables = [v for v in variables if v.name in var_names]
    function = model.compile_fn(variables, inputs=model.value_vars, on_unused_input="ignore")
    out: dict[str, np.ndarray] = {}
    for index in np.ndindex(points.shape):
        with deferred_interrupts():
            values = function(points[index])
        for variable, value in zip(variables, values, strict=True):
            if variable.name not in out:
                out[variable.name] = np.empty((*points.shape, *np.shape(value)), value.dtype)
            out[variable.name][index] = value
    return out


def data_tree(model: pm.Model, groups: dict, started: float, **attributes) -> xr.DataTree:
    """Join groups of a run, the model's observed and constant data, and attributes.

    ``started`` is the reading of `time.perf_counter` when the run began.
    """
    coords, dims = coords_and_dims_for_inferencedata(model)
    groups = groups | {
        "observed_data": find_observations(model),
        "constant_data": find_constants(model),
    }
    idata = arviz_base.from_dict(
        {name: group for name, group in groups.items() if group}, coords=coords, dims=dims
    )
    declared = declared_group(model)
    if declared is not None:
        idata[GROUP] = xr.DataTree(declared)
    idata.attrs.update(
        inference_library="pymc_trees",
        inference_library_version=__version__,
        sampling_time=time.perf_counter() - started,
        **attributes,
    )
    return idata


def check_var_names(model: pm.Model, var_names) -> list[str] | None:
    """Names of variables to record; an error for unknown ones."""
    if var_names is None:
        return None
    choices = [v.name for v in model.unobserved_value_vars if v.name in model.named_vars]
    names = [var_names] if isinstance(var_names, str) else list(var_names)
    unknown = [name for name in names if name not in choices]
    if unknown or not names:
        raise ValueError(f"var_names={var_names!r}: choose from {choices}.")
    return names
