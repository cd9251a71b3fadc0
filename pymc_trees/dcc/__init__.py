"""How is one soft tree of unknown topology sampled? DCC-Tree and RJHMC, a wing of its own.

Reading order. The random variable: `kernels` (topology, gates, value), `soft_tree_rv` (the variable
and its function of X), `soft_decision_tree` (the front-end, and what the rest of the package asks
of the variable). Its posterior given a topology: `read_model` (what is read from a model, and what
is refused), `topology_model` (gates as differentiable Ops, densities, prior draws and values),
`nuts`, `neighbours` (topologies that differ by one split). DCC-Tree: `local` (chains of one
topology), `evidence` (of one topology), `dcc` (which topology is next, algorithm 1 and its
settings), `sample_dcc` (a run), `dcc_tree` (a step). RJHMC: `jump_model` (densities for jumps),
`jump_chain` (from one density to another, NUTS and jumps), `rjhmc` (a step). `plots` draws trees
and topologies.

`register` makes soft trees known to the rest of the package, and the two steps to PyMC; `hooks`
calls it, and nothing else imports this package.

May import: `core`, `distributions`, `targets`, `posterior`, `inference`, `processes`; PyMC,
PyTensor; in `plots` matplotlib.
"""

from pymc.step_methods import STEP_METHODS

from pymc_trees.dcc import soft_decision_tree
from pymc_trees.dcc.dcc_tree import DCCTree
from pymc_trees.dcc.rjhmc import RJHMC


def register() -> None:
    """Register soft trees with the package, and their steps with `pymc.sample`."""
    soft_decision_tree.register_trees()
    STEP_METHODS.extend(step for step in (DCCTree, RJHMC) if step not in STEP_METHODS)
