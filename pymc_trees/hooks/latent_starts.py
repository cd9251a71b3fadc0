"""Initial values of latent normal entries lie within their limits."""

import functools

import pymc as pm
import pymc.initial_point
import pymc.model.core

from pymc_trees.distributions.tree_variable import tree_variables
from pymc_trees.distributions.without_dims import without_dims
from pymc_trees.hooks.wrap import wrap
from pymc_trees.targets.latent_normals import latent_entries


def start_within_limits() -> None:
    """Wrap what makes initial points: PyMC starts a normal at its mean, beyond limits or not."""
    wrap([pymc.model.core, pymc.initial_point], "make_initial_point_fn", _within)


def _within(original, *, model: pm.Model, return_transformed=True, **kwargs):
    function = original(model=model, return_transformed=return_transformed, **kwargs)
    if not (return_transformed and tree_variables(model)):
        return function
    entries = latent_entries(without_dims(model))
    if not entries:
        return function

    @functools.wraps(function)
    def started(*args, **given):
        point = function(*args, **given)
        for one in entries:
            point[one.value_name] = one.inside(point)
        return point

    return started
