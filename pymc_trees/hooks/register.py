"""Registration of the step methods with PyMC."""

import pymc.step_methods

from pymc_trees.step_methods.cgm import CGM
from pymc_trees.step_methods.dcc_tree import DCCTree
from pymc_trees.step_methods.grow_prune import GrowPrune
from pymc_trees.step_methods.hybrid import Hybrid
from pymc_trees.step_methods.noise_scale import NoiseScale
from pymc_trees.step_methods.particle_gibbs import ParticleGibbs
from pymc_trees.step_methods.rjhmc import RJHMC
from pymc_trees.step_methods.soft_cgm import SoftCGM
from pymc_trees.step_methods.split_weights import SplitWeights
from pymc_trees.step_methods.wtw import WTW

STEPS = (
    Hybrid,
    CGM,
    GrowPrune,
    WTW,
    ParticleGibbs,
    SoftCGM,
    DCCTree,
    RJHMC,
    SplitWeights,
    NoiseScale,
)


def register_steps() -> None:
    """Make `pymc.sample` assign steps to forests, soft trees, split weights and noise."""
    for step in STEPS:
        if step not in pymc.step_methods.STEP_METHODS:
            pymc.step_methods.STEP_METHODS.append(step)
