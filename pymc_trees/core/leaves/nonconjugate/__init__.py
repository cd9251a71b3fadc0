"""Leaf values that do not integrate out: drawn and weighted.

Reading order: `native` (the interface of a likelihood, and its derivatives), `proposal` (an
approximate conditional), `rowwise` (a likelihood that is a product over rows), `joint` (one that is
not); `gaussian` (rows that approximate a likelihood while a tree is changed); `surrogate` (kernels
for redrawing whole trees).

May import: `core.leaves.contract`.
"""

# Importing a model registers its kernels with the contracts.
from pymc_trees.core.leaves.nonconjugate import surrogate

__all__ = ["surrogate"]
