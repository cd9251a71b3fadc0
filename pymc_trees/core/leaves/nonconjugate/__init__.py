"""Leaf values that do not integrate out: they are drawn and weighted.

Reading order: `native` (the interface of a likelihood, and its derivatives), `proposal` (an
approximate conditional), `rowwise` (a likelihood that is a product over rows), `joint` (one that is
not), `gaussian` (Gaussian rows that approximate a likelihood), `coefficients` (leaves whose values
are not their outputs), `surrogate` (kernels for redrawing whole trees).

May import: `core.leaves.contract`.
"""

# Importing a model registers its kernels with the contracts.
from pymc_trees.core.leaves.nonconjugate import surrogate

__all__ = ["surrogate"]
