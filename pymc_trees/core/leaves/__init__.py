"""How probable are the rows of a leaf, with the leaf's value integrated out?

`contract` names what every leaf model answers; `normal`, `normal_gamma` and `dirichlet` are one
model each, a NamedTuple of numbers and data whose *type* chooses the kernels; `cells` and
`*_cells` their sums by column and code. `laplace`, for any other likelihood, weighs drawn values
instead (`laplace_fit` proposes them, `native` is how the likelihood gets here; `normal_vector` is
the prior of K values), and `whole` those of all leaves of a tree at once. `guided`, with `*_guide`
and `guide_rows`, is what both answer so that whole trees can be redrawn.

May import: `core.forest`.
"""

# Importing a model registers its kernels with the contract.
from pymc_trees.core.leaves import dirichlet, laplace, normal, normal_gamma, normal_vector, whole

__all__ = ["dirichlet", "laplace", "normal", "normal_gamma", "normal_vector", "whole"]
