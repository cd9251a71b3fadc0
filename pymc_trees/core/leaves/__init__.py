"""How probable are the rows of a leaf, with the leaf's value integrated out?

`contract` names what every leaf model answers; `normal`, `normal_gamma` and `dirichlet` are one
model each, a NamedTuple of numbers and data whose *type* chooses the kernels.

May import: `core.forest`.
"""

# Importing a model registers its kernels with the contract.
from pymc_trees.core.leaves import dirichlet, normal, normal_gamma

__all__ = ["dirichlet", "normal", "normal_gamma"]
