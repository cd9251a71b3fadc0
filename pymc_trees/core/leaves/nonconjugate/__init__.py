"""Leaf values that do not integrate out: drawn and weighed.

Reading order: `native` (how a likelihood gets here), `laws` (common ones, written out), `proposal`
(an approximate conditional), `workspace`, `rowwise` (a likelihood that is a product over rows),
`joint_mode` and `joint` (one that is not); `gaussian` (rows that stand for a likelihood while a
tree is moved); `surrogate` with `rowwise_surrogate`, `joint_surrogate` (what both answer so that
whole trees can be redrawn).

May import: `core.leaves.contract`.
"""

# Importing a model registers its kernels with the contracts.
from pymc_trees.core.leaves.nonconjugate import joint_surrogate, rowwise_surrogate

__all__ = ["joint_surrogate", "rowwise_surrogate"]
