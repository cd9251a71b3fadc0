"""Methods of PyMC that would treat the numbers of an encoded forest as coordinates.

Values that they propose are not valid forests: optimisation would end at an invalid forest, random
walks would never leave their initial trees, and sequential Monte Carlo never those drawn from the
prior.
"""

import pymc as pm
import pymc.sampling.mcmc
import pymc.smc.sampling
import pymc.tuning.starting
from pymc.step_methods.arraystep import ArrayStep, ArrayStepShared
from pymc.step_methods.compound import BlockedStep
from pymc.util import get_value_vars_from_user_vars

from pymc_trees.distributions.tree_variable import is_tree_variable, tree_variables
from pymc_trees.hooks.wrap import SAMPLE, arguments, wrap

FIND_MAP = [pm, pymc.tuning, pymc.tuning.starting]
SAMPLE_SMC = [pm, pymc.smc, pymc.smc.sampling]
"""Modules in which users find these functions."""

REMARKS = {
    "find_MAP": "Name the other variables, find_MAP(vars=[...]), to leave the forest where it is",
    "sample_smc": "Its proposals are normal, and trees are not vectors",
}

REMEDY = (
    "sample with pm.sample(), which assigns pymc_trees.Hybrid (or give it step=pymc_trees.CGM()) "
    "to forests, pymc_trees.SoftCGM to sums of soft trees and pymc_trees.DCCTree to soft trees."
)


def refuse_outsiders() -> None:
    """Make them raise an error if trees are among their variables."""
    wrap(FIND_MAP, "find_MAP", _refuse)
    wrap(SAMPLE_SMC, "sample_smc", _refuse)
    wrap([BlockedStep], "__new__", _make_step)
    wrap(SAMPLE, "sample", _sample)


def _refuse(original, *args, **kwargs):
    """`find_MAP` or `sample_smc`, for variables other than trees."""
    name, given = original.__name__, arguments(original, args, kwargs)
    model = pm.modelcontext(given.get("model"))
    moved = list(model.free_RVs)
    if given.get("vars") is not None:
        values = get_value_vars_from_user_vars(given["vars"], model)
        moved = [model.values_to_rvs[value] for value in values]
    forests = [rv.name for rv in moved if is_tree_variable(rv)]
    if forests:
        raise NotImplementedError(f"{name} cannot sample {forests}. {REMARKS[name]}; or {REMEDY}")
    return original(*args, **kwargs)


def _make_step(original, cls, *args, **kwargs):
    """Constructor of steps; those that operate on a vector raise an error for forests."""
    if issubclass(cls, ArrayStep | ArrayStepShared):
        model = pm.modelcontext(kwargs.get("model"))
        given = args[0] if args else kwargs.get("vars")
        given = model.value_vars if given is None else given
        given = given if isinstance(given, list | tuple) else [given]
        forests = [
            tree.name
            for tree in tree_variables(model)
            if any(v is tree.rv or v is model.rvs_to_values[tree.rv] for v in given)
        ]
        if forests:
            raise NotImplementedError(
                f"{cls.__name__} works on vectors and cannot sample {forests}. Name the other "
                f"variables, {cls.__name__}([...]), and {REMEDY}"
            )
    return original(cls, *args, **kwargs)


def _sample(original, *args, **kwargs):
    """`pymc.sample`; samplers of other libraries only support NUTS."""
    sampler = kwargs.get("nuts_sampler")
    if sampler not in (None, "pymc"):
        model = pm.modelcontext(kwargs.get("model"))
        forests = [tree.name for tree in tree_variables(model)]
        if forests:
            raise NotImplementedError(
                f"nuts_sampler={sampler!r} cannot sample {forests}, which need PyMC's own "
                "sampler: leave nuts_sampler out, so that PyMC's NUTS samples the other "
                f"variables, and {REMEDY}"
            )
    return original(*args, **kwargs)
