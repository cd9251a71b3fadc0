"""Methods of PyMC that would move a forest as if its numbers were coordinates.

None of what they can write into a value is a forest: optimisation would end at no forest at all,
random walks never leave the trees they start from, and sequential Monte Carlo never those that it
drew from the prior.
"""

import functools
import inspect

import pymc as pm
import pymc.sampling.mcmc
import pymc.smc.sampling
import pymc.tuning.starting
from pymc.step_methods.arraystep import ArrayStep, ArrayStepShared
from pymc.step_methods.compound import BlockedStep
from pymc.util import get_value_vars_from_user_vars

from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.ops.soft_tree_rv import is_soft_tree

OUTSIDERS = {
    "find_MAP": (
        [pm, pymc.tuning, pymc.tuning.starting],
        "Name the other variables, find_MAP(vars=[...]), to leave the forest where it is",
    ),
    "sample_smc": (
        [pm, pymc.smc, pymc.smc.sampling],
        "Its proposals are normal, and trees are not vectors",
    ),
}
"""Function: the modules users find it in, and what to say of it."""

REMEDY = (
    "sample with pm.sample(), which assigns pymc_trees.Hybrid (or give it step=pymc_trees.CGM()) "
    "to forests and pymc_trees.DCCTree to soft trees."
)


def refuse_outsiders() -> None:
    """Make them say so when a forest is among the variables they would move; once each."""
    for name, (modules, remark) in OUTSIDERS.items():
        original = getattr(modules[-1], name, None)
        if original is not None and not getattr(original, "spares_forests", False):
            wrapped = _sparing(original, name, remark)
            for module in modules:
                setattr(module, name, wrapped)
    if not getattr(BlockedStep.__new__, "spares_forests", False):
        BlockedStep.__new__ = staticmethod(_sparing_steps(BlockedStep.__new__))
    if not getattr(pymc.sampling.mcmc.sample, "spares_forests", False):
        wrapped = _sampling_by_pymc(pymc.sampling.mcmc.sample)
        for module in (pm, pymc.sampling, pymc.sampling.mcmc):
            module.sample = wrapped


def _sparing(original, name, remark):
    signature = inspect.signature(original)

    @functools.wraps(original)
    def run(*args, **kwargs):
        given = signature.bind(*args, **kwargs).arguments
        model = pm.modelcontext(given.get("model"))
        moved = list(model.free_RVs)
        if given.get("vars") is not None:
            values = get_value_vars_from_user_vars(given["vars"], model)
            moved = [model.values_to_rvs[value] for value in values]
        forests = [rv.name for rv in moved if is_forest(rv) or is_soft_tree(rv)]
        if forests:
            raise NotImplementedError(f"{name} cannot move {forests}. {remark}; or {REMEDY}")
        return original(*args, **kwargs)

    run.spares_forests = True  # type: ignore[attr-defined]
    return run


def _sparing_steps(original):
    """Constructor of steps; those that walk a vector refuse forests."""

    @functools.wraps(original)
    def make(cls, *args, **kwargs):
        if issubclass(cls, ArrayStep | ArrayStepShared):
            model = pm.modelcontext(kwargs.get("model"))
            given = args[0] if args else kwargs.get("vars")
            given = model.value_vars if given is None else given
            given = given if isinstance(given, list | tuple) else [given]
            forests = [
                rv.name
                for rv in model.free_RVs
                if (is_forest(rv) or is_soft_tree(rv))
                and any(v is rv or v is model.rvs_to_values[rv] for v in given)
            ]
            if forests:
                raise NotImplementedError(
                    f"{cls.__name__} walks through vectors and cannot move {forests}. Name the "
                    f"other variables, {cls.__name__}([...]), and {REMEDY}"
                )
        return original(cls, *args, **kwargs)

    make.spares_forests = True  # type: ignore[attr-defined]
    return make


def _sampling_by_pymc(original):
    """`pymc.sample`; other libraries' samplers know no steps but NUTS."""

    @functools.wraps(original)
    def sample(*args, **kwargs):
        sampler = kwargs.get("nuts_sampler")
        if sampler not in (None, "pymc"):
            model = pm.modelcontext(kwargs.get("model"))
            forests = [rv.name for rv in model.free_RVs if is_forest(rv) or is_soft_tree(rv)]
            if forests:
                raise NotImplementedError(
                    f"nuts_sampler={sampler!r} cannot move {forests}, which need PyMC's own "
                    "sampling: leave nuts_sampler out, so that PyMC's NUTS moves the other "
                    f"variables, and {REMEDY}"
                )
        return original(*args, **kwargs)

    sample.spares_forests = True  # type: ignore[attr-defined]
    return sample
