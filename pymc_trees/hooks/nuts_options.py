"""Options for NUTS (``target_accept``, ``nuts={...}``) in a model that leaves NUTS nothing to do.

PyMC refuses options of a step that it assigned to no variable. If they are given, NUTS is assigned
to the noise instead of `NoiseScale`.
"""

import pymc as pm
import pymc.sampling.mcmc

from pymc_trees.hooks.wrap import wrap
from pymc_trees.step_methods.noise_scale import NoiseScale


def give_noise_to_nuts() -> None:
    """Wrap the function in which `pymc.sample` creates assigned steps."""
    wrap([pymc.sampling.mcmc], "instantiate_steppers", _instantiate)


def _instantiate(original, model, steps, selected_steps, *, step_kwargs=None, **kwargs):
    wanted = step_kwargs is not None and pm.NUTS.name in step_kwargs
    if wanted and NoiseScale in selected_steps and pm.NUTS not in selected_steps:
        selected_steps = {
            pm.NUTS if kind is NoiseScale else kind: variables
            for kind, variables in selected_steps.items()
        }
    return original(model, steps, selected_steps, step_kwargs=step_kwargs, **kwargs)
