"""How do forests move under `pm.sample`? PyMC step methods: unpack, one core call, pack.

Reading order: `base` (what all steps share), `working` (one forest's arrays between steps),
`too_large` (what becomes of the draws when a forest outgrows its room), `sweep` (what all samplers
share), `metropolis` (sweeps of Metropolis moves), `cgm`, `grow_prune` (its two public faces),
`particle_gibbs` (whole trees), `convergence` (PyMC's warnings,
judged on function values), `outsiders` (what PyMC must not do to a forest). Importing this package
registers the steps with PyMC.

May import: `core`, `distributions`, `targets`; PyMC.
"""

import pymc.step_methods

from pymc_trees.distributions.data import check_new_data
from pymc_trees.step_methods.cgm import CGM
from pymc_trees.step_methods.convergence import judge_function_values
from pymc_trees.step_methods.grow_prune import GrowPrune
from pymc_trees.step_methods.outsiders import refuse_outsiders
from pymc_trees.step_methods.particle_gibbs import ParticleGibbs
from pymc_trees.step_methods.too_large import keep_draws


def _register():
    for step in (CGM, GrowPrune, ParticleGibbs):
        if step not in pymc.step_methods.STEP_METHODS:
            pymc.step_methods.STEP_METHODS.append(step)
    judge_function_values()
    keep_draws()
    refuse_outsiders()
    check_new_data()


_register()

__all__ = ["CGM", "GrowPrune", "ParticleGibbs"]
