"""The state of moves and samplers: the trees, and the model under which they are drawn."""

from typing import NamedTuple

from pymc_trees.core.columns.design import Design
from pymc_trees.core.columns.mixed import MixedDesign
from pymc_trees.core.compile.handle import Handle
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.forest.trees import Trees


@by_pointer
class Problem(NamedTuple):
    """A forest and its posterior; kernels dispatch on the types of design, prior and leaf."""

    trees: Trees
    """Changed in place."""
    design: Design | MixedDesign | Handle
    """The training rows."""
    prior: tuple | Handle
    """Tree prior, see `priors.contract`."""
    leaf: tuple | Handle
    """Leaf model and data, see `leaves.contract`; its working residual is changed in place."""
