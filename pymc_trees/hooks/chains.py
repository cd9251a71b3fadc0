"""`pymc.sample` passes its chains to a runner, if one is set (`inference.chains.runner`)."""

import pymc.sampling.mcmc

from pymc_trees.hooks.wrap import wrap
from pymc_trees.inference.chains.runner import RUNNER


def give_chains_out() -> None:
    """Wrap the function that runs chains in sequence."""
    wrap([pymc.sampling.mcmc], "_sample_many", _elsewhere)


def _elsewhere(original, **given):
    runner = RUNNER.get()
    return original(**given) if runner is None else runner(**given)
