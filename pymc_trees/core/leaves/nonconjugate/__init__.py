"""Leaf values that do not integrate out: drawn and weighed.

Reading order: `native` (how a likelihood gets here), `proposal` (an approximate conditional),
`workspace`, `rowwise` (a likelihood that is a product over rows), `joint` (one that is not);
`surrogate` with `gaussian_rows`, `rowwise_surrogate`, `joint_surrogate` (what both answer so that
whole trees can be redrawn).

May import: `core.leaves.contract`.
"""

# Importing a model registers its kernels with the contract.
from pymc_trees.core.leaves.nonconjugate import joint, rowwise

__all__ = ["joint", "rowwise"]
