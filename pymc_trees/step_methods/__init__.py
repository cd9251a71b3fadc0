"""How do forests move under `pm.sample`? PyMC step methods: unpack, one core call, pack.

Reading order: `base` (what all steps share), `working` (one forest's arrays between steps),
`too_large` (what becomes of the draws when a forest outgrows its room), `sweep` (what all samplers
share), `metropolis` (sweeps of Metropolis moves), `cgm`, `grow_prune` (its two public faces),
`whole_trees` (trees redrawn from the root), `particle_gibbs` and `hybrid` (its public faces, alone
and between local moves), `split_weights` (Dirichlet split weights), `convergence` (PyMC's warnings,
judged on function values), `outsiders` (what PyMC must not do to a forest), `forward_sampling`
and `sampling` (what PyMC compiles, kept from interrupts), `new_rows` (what prediction at other rows
asks of a model), `dcc_tree` and `soft_convergence` (soft trees). Importing this package registers
the steps with PyMC.

May import: `core`, `distributions`, `targets`; PyMC; `dcc_tree` the run in `inference`.
"""

import pymc.step_methods

from pymc_trees.distributions.data import check_new_data
from pymc_trees.step_methods.cgm import CGM
from pymc_trees.step_methods.convergence import judge_function_values
from pymc_trees.step_methods.dcc_tree import DCCTree
from pymc_trees.step_methods.forward_sampling import defer_in_draws
from pymc_trees.step_methods.grow_prune import GrowPrune
from pymc_trees.step_methods.hybrid import Hybrid
from pymc_trees.step_methods.new_rows import explain_shapes
from pymc_trees.step_methods.outsiders import refuse_outsiders
from pymc_trees.step_methods.particle_gibbs import ParticleGibbs
from pymc_trees.step_methods.sampling import defer_around_draws
from pymc_trees.step_methods.soft_convergence import judge_soft_trees
from pymc_trees.step_methods.split_weights import SplitWeights
from pymc_trees.step_methods.too_large import keep_draws


def _register():
    for step in (Hybrid, CGM, GrowPrune, ParticleGibbs, DCCTree, SplitWeights):
        if step not in pymc.step_methods.STEP_METHODS:
            pymc.step_methods.STEP_METHODS.append(step)
    judge_function_values()
    judge_soft_trees()
    keep_draws()
    defer_in_draws()
    defer_around_draws()
    refuse_outsiders()
    explain_shapes()
    check_new_data()


_register()

__all__ = ["CGM", "DCCTree", "GrowPrune", "Hybrid", "ParticleGibbs", "SplitWeights"]
