"""Which priors of leaf values are there? One file each, as users name them.

`contract` (what a leaf prior must define, and `LEAVES`, the table of them), `normal` (also for
several outputs of one tree), `basis` (coefficients, which are such outputs), `linear`, `monotone`,
`normal_gamma`, `dirichlet`, `default` (the leaf of front-ends where users give none).
`contract.register_leaf` adds one, from this package or not.

May import: `core`, `distributions.data`; PyMC, PyTensor.
"""

from pymc_trees.distributions.leaves import dirichlet, linear, normal, normal_gamma

__all__ = ["dirichlet", "linear", "normal", "normal_gamma"]
