"""Groups in a model with trees: predictions of groups that were not seen, and indices in range.

`pymc.sample_posterior_predictive` keeps the draws of a vector of group effects as they are, of the
groups that were seen; an index past its end would read foreign memory. A wrapper completes such
vectors where the model's coordinates have new labels (`posterior.new_groups`), and checks every
index that is data, also before sampling.
"""

import logging
from typing import Any, cast
from weakref import WeakSet

import numpy as np
import pymc as pm
import pymc.sampling
import pymc.sampling.deterministic
import pymc.sampling.forward
import pymc.stats
import pymc.stats.log_density
import xarray as xr
from pymc.util import get_random_generator
from pytensor.graph.basic import Variable

from pymc_trees.distributions.tree_variable import tree_variables
from pymc_trees.distributions.without_dims import without_dims
from pymc_trees.hooks.wrap import SAMPLE, arguments, wrap
from pymc_trees.posterior.draws import SAMPLE as SAMPLE_DIMS
from pymc_trees.posterior.new_groups import changed_dims, labels_of, with_new_groups
from pymc_trees.posterior.reading.indices import check_indices

FORWARD = [pm, pymc.sampling, pymc.sampling.forward]
DENSITIES = [pymc.stats, pymc.stats.log_density]
DETERMINISTIC = [pm, pymc.sampling, pymc.sampling.deterministic]
"""Modules that export these functions."""

WITHOUT_TREES: WeakSet[pm.Model] = WeakSet()
"""Further models to serve: those of a formula without forests."""

_log = logging.getLogger("pymc")


def check_groups() -> None:
    """Wrap what samples, and what uses draws."""
    wrap(SAMPLE, "sample", _checked_model)
    wrap(FORWARD, "sample_prior_predictive", _checked_model)
    wrap(FORWARD, "sample_posterior_predictive", _predict)
    wrap([pm, *DENSITIES], "compute_log_likelihood", _checked_draws)
    wrap(DENSITIES, "compute_log_prior", _checked_draws)
    wrap(DETERMINISTIC, "compute_deterministics", _checked_draws)


def _model_with_trees(call: dict[str, Any]) -> pm.Model | None:
    model = pm.modelcontext(call.get("model"))
    served = bool(tree_variables(model)) or model in WITHOUT_TREES
    return without_dims(model) if served else None


def _checked_model(original, *args, **kwargs):
    """All variables have the lengths that the model gives them."""
    model = _model_with_trees(arguments(original, args, kwargs))
    if model is not None:
        check_indices(model, [*model.basic_RVs, *model.deterministics, *model.potentials])
    return original(*args, **kwargs)


def _checked_draws(original, *args, **kwargs):
    """Free variables have the lengths that they have in the draws."""
    call = arguments(original, args, kwargs)
    model = _model_with_trees(call)
    if model is not None:
        draws = _dataset(call.get("idata", call.get("dataset")))
        if draws is not None:
            everything = [*model.basic_RVs, *model.deterministics]
            check_indices(model, everything, _held(model, draws, SAMPLE_DIMS, model.free_RVs))
    return original(*args, **kwargs)


def _predict(original, *args, **kwargs):
    """`pymc.sample_posterior_predictive`, with draws of new groups."""
    call = arguments(original, args, kwargs)
    model, trace = _model_with_trees(call), call.get("trace")
    draws = None if model is None else _dataset(trace)
    dims = tuple(call.get("sample_dims") or SAMPLE_DIMS)
    if model is None or draws is None or not set(dims) <= set(draws.dims):
        return original(*args, **kwargs)
    drawn, frozen = _names(call.get("sample_vars")), _names(call.get("freeze_vars"))
    names = _names(call.get("var_names")) or drawn
    outputs = _variables(model, names) or model.observed_RVs
    changes = changed_dims(model, draws, outputs, [*drawn, *frozen])
    extended = False
    if changes:
        rng = _generator(call.get("random_seed"))
        draws = with_new_groups(model, draws, changes, _constant_data(trace), dims, rng)
        new = {dim: labels for dim, labels in labels_of(changes).items() if labels}
        _log.info(f"New entries of {[rv.name for rv in changes]}: {new}")
        call["trace"] = _replaced(trace, draws)
        call["freeze_vars"] = [*frozen, *(rv.name for rv in changes)]
        extended = bool(call.pop("extend_inferencedata", False)) and call["trace"] is not draws
    known = [v for v in model.free_RVs if v.name not in drawn]
    held = _held(model, draws, dims, [*known, *_variables(model, frozen)])
    check_indices(model, outputs, held)
    result = original(**call)
    if not extended or not isinstance(result, xr.DataTree):
        return result
    tree = cast("xr.DataTree", trace)
    for name, group in result.children.items():
        tree[name] = group
    return tree


def _names(given) -> list[str]:
    return [given] if isinstance(given, str) else list(given or ())


def _variables(model: pm.Model, names: list[str]) -> list[Variable]:
    """Variables of these names; PyMC raises an error for others."""
    return [model[name] for name in names if name in model.named_vars]


def _dataset(trace) -> xr.Dataset | None:
    """Draws with names; None for a list of points, say."""
    if isinstance(trace, xr.DataTree):
        group = trace["posterior"] if "posterior" in trace.children else trace
        return cast("xr.DataTree", group).to_dataset()
    return trace if isinstance(trace, xr.Dataset) else None


def _replaced(trace, draws: xr.Dataset):
    """The same with other draws."""
    if not isinstance(trace, xr.DataTree) or "posterior" not in trace.children:
        return draws
    tree = trace.copy()
    tree["posterior"] = xr.DataTree(draws)
    return tree


def _constant_data(trace) -> dict[str, np.ndarray]:
    group = trace.children.get("constant_data") if isinstance(trace, xr.DataTree) else None
    return {} if group is None else {str(k): v.to_numpy() for k, v in group.data_vars.items()}


def _held(model, draws: xr.Dataset, dims, variables) -> dict[Variable, tuple[int, ...]]:
    """Shapes of variables in the draws."""
    return {
        v: tuple(draws[v.name].transpose(*dims, ...).shape[len(dims) :])
        for v in variables
        if v.name in draws and set(dims) <= set(draws[v.name].dims)
    }


def _generator(seed) -> np.random.Generator:
    """A stream beside the one that PyMC makes of the same seed."""
    if isinstance(seed, np.random.RandomState):
        entropy = seed.get_state()[1]
    else:
        entropy = get_random_generator(seed).integers(2**31, size=4)
    return np.random.default_rng([*(int(k) for k in entropy), 0])
