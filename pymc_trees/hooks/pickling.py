"""A process that unpickles a model gets the steps and the other hooks as well.

A pickle refers to a function of this module, so loading it imports the package of hooks; the Ops
themselves do not depend on it.
"""

import copyreg

from pymc_trees.distributions.ops.forest_rv import ForestRV
from pymc_trees.distributions.ops.soft_forest_rv import SoftForestRV
from pymc_trees.distributions.ops.soft_tree_rv import SoftTreeRV


def pickle_with_hooks() -> None:
    """Register this with `pickle`, `copy` and cloudpickle."""
    for op in (ForestRV, SoftForestRV, SoftTreeRV):
        copyreg.pickle(op, _reduce)


def _reduce(op):
    return restore, (type(op), op.__dict__)


def restore(kind, state):
    """The Op that was pickled."""
    op = kind.__new__(kind)
    op.__dict__.update(state)
    return op
