"""`pymc.sample` of a model with trees, kept from interrupts but between two steps.

One that arrives while numba compiles, loads or gives up a function can end the process, even later;
one that arrives in PyMC's compiled log-probability may come out as a `SystemError`, and the draws
made before would be lost. So they wait while `pymc.sample` prepares and finishes, and while the
steps of an iteration are made.
"""

import functools
import inspect

import pymc as pm
import pymc.sampling.mcmc
from pymc.step_methods.compound import CompoundStep

from pymc_trees.core.interrupts import answered_interrupts, deferred_interrupts
from pymc_trees.distributions.forest_rv import is_forest
from pymc_trees.distributions.soft_tree_rv import is_soft_tree
from pymc_trees.step_methods.base import ForestStep
from pymc_trees.step_methods.split_weights import SplitWeights
from pymc_trees.step_methods.too_large import LOOPS


def defer_around_draws() -> None:
    """Wrap `pymc.sample`, its loops and the loop over the steps of an iteration, once each."""
    sample = _once(pymc.sampling.mcmc.sample, _prepare_and_finish)
    for module in (pm, pymc.sampling, pymc.sampling.mcmc):
        module.sample = sample
    for name in LOOPS:
        if hasattr(pymc.sampling.mcmc, name):
            loop = _once(getattr(pymc.sampling.mcmc, name), _draw)
            setattr(pymc.sampling.mcmc, name, loop)
    CompoundStep.step = _once(CompoundStep.step, _step)


def _once(original, wrap):
    if getattr(original, "defers_interrupts", False):
        return original
    wrapped = functools.wraps(original)(wrap(original))
    wrapped.defers_interrupts = True  # type: ignore[attr-defined]
    return wrapped


def _prepare_and_finish(original):
    signature = inspect.signature(original)

    def sample(*args, **kwargs):
        model = signature.bind_partial(*args, **kwargs).arguments.get("model")
        model = pm.modelcontext(model)
        if not any(is_forest(rv) or is_soft_tree(rv) for rv in model.free_RVs):
            return original(*args, **kwargs)
        with deferred_interrupts():
            return original(*args, **kwargs)

    return sample


def _draw(original):
    def loop(*args, **kwargs):
        with answered_interrupts():
            return original(*args, **kwargs)

    return loop


def _step(original):
    def step(self, point):
        if not any(isinstance(method, ForestStep | SplitWeights) for method in self.methods):
            return original(self, point)
        with deferred_interrupts():
            return original(self, point)

    return step
