"""Methods of PyMC that would move a forest as if its numbers were coordinates.

They ask no step method, and none of what they can write into a value is a forest: optimisation
would end at no forest at all, and sequential Monte Carlo never leave the trees it drew from the
prior.
"""

import functools
import inspect

import pymc as pm
import pymc.smc.sampling
import pymc.tuning.starting
from pymc.util import get_value_vars_from_user_vars

from pymc_trees.distributions.forest_rv import is_forest
from pymc_trees.distributions.soft_tree_rv import is_soft_tree

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


def refuse_outsiders() -> None:
    """Make them say so when a forest is among the variables they would move."""
    for name, (modules, remark) in OUTSIDERS.items():
        original = getattr(modules[-1], name, None)
        if original is not None and not getattr(original, "spares_forests", False):
            wrapped = _sparing(original, name, remark)
            for module in modules:
                setattr(module, name, wrapped)


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
            raise NotImplementedError(
                f"{name} cannot move {forests}. {remark}; or sample with pm.sample(), which "
                "assigns pymc_trees.Hybrid (or give it step=pymc_trees.CGM()) to forests and "
                "pymc_trees.DCCTree to soft trees."
            )
        return original(*args, **kwargs)

    run.spares_forests = True  # type: ignore[attr-defined]
    return run
