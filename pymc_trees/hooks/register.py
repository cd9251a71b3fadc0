"""Registration of the step methods with PyMC; the wing of soft trees registers its own."""

import pymc as pm
import pymc.sampling.mcmc
import pymc.step_methods

from pymc_trees.hooks.wrap import wrap
from pymc_trees.step_methods.cgm import CGM, GrowPrune, RestructureCGM
from pymc_trees.step_methods.hybrid import Hybrid
from pymc_trees.step_methods.noise_scale import NoiseScale
from pymc_trees.step_methods.particle_gibbs import ParticleGibbs
from pymc_trees.step_methods.soft_cgm import SoftCGM
from pymc_trees.step_methods.split_weights import SplitWeights

STEPS = (
    Hybrid,
    CGM,
    GrowPrune,
    RestructureCGM,
    ParticleGibbs,
    SoftCGM,
    SplitWeights,
    NoiseScale,
)


def register_steps() -> None:
    """Make `pymc.sample` assign steps to forests, split weights and noise scales."""
    for step in STEPS:
        if step not in pymc.step_methods.STEP_METHODS:
            pymc.step_methods.STEP_METHODS.append(step)


# --------------------------------------------------------------------------------------------------
# Options for NUTS (``target_accept``, ``nuts={...}``) in a model that has no variable for NUTS.
#
# PyMC rejects options of a step that it assigned to no variable. If they are given, NUTS is
# assigned to the noise scale instead of `NoiseScale`.


def give_noise_to_nuts() -> None:
    """Wrap the function in which `pymc.sample` creates assigned steps."""
    wrap([pymc.sampling.mcmc], "instantiate_steppers", _instantiate)


def _instantiate(original, model, steps, selected_steps, *, step_kwargs=None, **kwargs):
    has_options = step_kwargs is not None and pm.NUTS.name in step_kwargs
    if has_options and NoiseScale in selected_steps and pm.NUTS not in selected_steps:
        selected_steps = {
            pm.NUTS if step is NoiseScale else step: variables
            for step, variables in selected_steps.items()
        }
    return original(model, steps, selected_steps, step_kwargs=step_kwargs, **kwargs)
