"""Which priors of leaf values are there? One file each, as users name them.

`contract` (what a leaf prior says of itself, and `LEAVES`, the table of them), `normal` (with
several outputs of one tree too), `basis` (coefficients, which are such outputs), `linear`,
`monotone`, `normal_gamma`, `dirichlet`, `default` (what front-ends take when none is given).
`contract.register_leaf` adds one, from this package or not.

May import: `core`, `distributions.data`; PyMC, PyTensor.
"""

from pymc_trees.distributions.leaves import dirichlet, linear, normal, normal_gamma

__all__ = ["dirichlet", "linear", "normal", "normal_gamma"]
