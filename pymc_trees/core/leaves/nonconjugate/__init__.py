"""Leaf values that do not integrate out: drawn and weighted.

Reading order: `native` (the interface of a likelihood), `laws` (compiled common ones), `slopes`
(derivatives, by differences where need be), `proposal` (an approximate conditional), `workspace`,
`rowwise` (a likelihood that is a product over rows), `joint_mode` and `joint` (one that is not);
`gaussian` (rows that approximate a likelihood while a tree is changed); `surrogate` with
`rowwise_surrogate`, `joint_surrogate` (kernels for redrawing whole trees).

May import: `core.leaves.contract`.
"""

# Importing a model registers its kernels with the contracts.
from pymc_trees.core.leaves.nonconjugate import joint_surrogate, rowwise_surrogate

__all__ = ["joint_surrogate", "rowwise_surrogate"]
