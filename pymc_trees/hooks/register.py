"""Registration of the step methods with PyMC; the wing of soft trees registers its own."""

import pymc as pm
import pymc.sampling.mcmc
import pymc.step_methods

from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.ops.soft_forest_rv import is_soft_forest
from pymc_trees.hooks.wrap import wrap
from pymc_trees.step_methods.cgm import CGM, GrowPrune, RestructureCGM
from pymc_trees.step_methods.hybrid import Hybrid
from pymc_trees.step_methods.latent_column import LatentColumn
from pymc_trees.step_methods.latent_normals import LatentNormals
from pymc_trees.step_methods.noise_scale import NoiseScale
from pymc_trees.step_methods.particle_gibbs import ParticleGibbs
from pymc_trees.step_methods.soft_cgm import SoftCGM
from pymc_trees.step_methods.split_weights import SplitWeights
from pymc_trees.step_methods.sweep import SweepStep
from pymc_trees.terms.one_sided_step import OneSidedErrors, can_draw_errors
from pymc_trees.terms.step import GaussianTerms, can_draw

STEPS = (
    Hybrid,
    CGM,
    GrowPrune,
    RestructureCGM,
    ParticleGibbs,
    SoftCGM,
    SplitWeights,
    OneSidedErrors,  # before the step that is as good for the sd
    NoiseScale,
    LatentNormals,
    LatentColumn,
    GaussianTerms,
)


def register_steps() -> None:
    """Make `pymc.sample` assign steps to forests, their split weights, and what is around them."""
    known = pymc.step_methods.STEP_METHODS
    for step in STEPS:
        if step not in known:
            # of equals PyMC takes the first: its own step for categories is one
            known.insert(0 if step is LatentColumn else len(known), step)


# --------------------------------------------------------------------------------------------------
# What PyMC assigned, seen again before the steps are created.
#
# A forest with a step that the user passed is sampled by that step alone: the terms around it are
# left to NUTS, and so is the sd of group effects that have another step. And PyMC rejects options
# of NUTS (``target_accept``, ``nuts={...}``) in a model that has no variable for it: the noise
# scale, or else the terms, is assigned to NUTS then.


def review_assignment() -> None:
    """Wrap the function in which `pymc.sample` creates assigned steps."""
    wrap([pymc.sampling.mcmc], "instantiate_steppers", _instantiate)


def _instantiate(original, model, steps, selected_steps, *, step_kwargs=None, **kwargs):
    passed = [model.values_to_rvs[value] for step in steps for value in step.vars]
    has_step = any(is_forest(rv) or is_soft_forest(rv) for rv in passed)
    for step, can in ((GaussianTerms, can_draw), (OneSidedErrors, can_draw_errors)):
        if step in selected_steps:
            able = [] if has_step else can(model, selected_steps[step])
            selected_steps = _to_nuts(step, selected_steps, able)
    if step_kwargs is not None and pm.NUTS.name in step_kwargs:
        for step in (NoiseScale, GaussianTerms, OneSidedErrors):
            if pm.NUTS not in selected_steps:
                selected_steps = _to_nuts(step, selected_steps)
    selected_steps = _columns_before_forests(selected_steps)
    made = original(model, steps, selected_steps, step_kwargs=step_kwargs, **kwargs)
    for terms in (step for step in steps if isinstance(step, GaussianTerms | OneSidedErrors)):
        for sweep in (step for step in steps if isinstance(step, SweepStep)):
            terms.share(sweep)
    return made


def _columns_before_forests(selected_steps):
    """Random columns right before the forests: f is known until a column moves, for other steps."""
    forests = [step for step in selected_steps if issubclass(step, SweepStep)]
    if LatentColumn not in selected_steps or not forests:
        return selected_steps
    rest = [step for step in selected_steps if step is not LatentColumn]
    at = rest.index(forests[0])
    return {step: selected_steps[step] for step in (*rest[:at], LatentColumn, *rest[at:])}


def _to_nuts(step, selected_steps, but=()):
    """Variables by step, those of one step among those of NUTS, but for some; the order stays."""
    moved: dict = {}
    for one, variables in selected_steps.items():
        for value in variables:
            goes = one is step and not any(value is stays for stays in but)
            moved.setdefault(pm.NUTS if goes else one, []).append(value)
    return moved
