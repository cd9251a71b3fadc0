"""Bayesian trees for PyMC: forests as random variables, samplers as step methods.

Names are loaded when they are first used, so that ``import pymc_trees`` costs next to nothing;
the first use of any of them registers the step methods with PyMC.
"""

from importlib import import_module

from pymc_trees._version import __version__

_HOMES = {
    "BART": "distributions.bart",
    "CGM": "step_methods.cgm",
    "Data": "distributions.data",
    "DecisionTree": "distributions.decision_tree",
    "DirichletLeaf": "distributions.leaves",
    "Forest": "distributions.forest",
    "GrowPrune": "step_methods.grow_prune",
    "NormalGammaLeaf": "distributions.leaves",
    "NormalLeaf": "distributions.leaves",
    "PGBART": "step_methods.particle_gibbs",
    "ParticleGibbs": "step_methods.particle_gibbs",
    "check_draws": "posterior.check_draws",
    "evaluate": "distributions.evaluation",
    "set_data": "distributions.data",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module 'pymc_trees' has no attribute {name!r}")
    import_module("pymc_trees.step_methods")  # registers them
    value = getattr(import_module(f"pymc_trees.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted([*globals(), *_HOMES])
