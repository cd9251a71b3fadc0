"""A process that only unpickles a model has the steps and the other hooks put on as well.

A pickle names a function of this module, so loading it imports the package of hooks;
the Ops themselves know nothing of it.
"""

import copyreg

from pymc_trees.distributions.ops.forest_rv import ForestRV
from pymc_trees.distributions.ops.soft_forest_rv import SoftForestRV
from pymc_trees.distributions.ops.soft_tree_rv import SoftTreeRV


def pickle_with_hooks() -> None:
    """Have `pickle`, `copy` and cloudpickle write the variables of trees so."""
    for op in (ForestRV, SoftForestRV, SoftTreeRV):
        copyreg.pickle(op, _reduce)


def _reduce(op):
    return restore, (type(op), op.__dict__)


def restore(kind, state):
    """The Op that was pickled."""
    op = kind.__new__(kind)
    op.__dict__.update(state)
    return op
