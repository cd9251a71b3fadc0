"""Which likelihoods integrate a leaf's values out? One file for each leaf.

================== ==========================================================================
leaf               likelihood
================== ==========================================================================
`NormalLeaf`       one Normal whose mean is f, or a multiple of f plus other terms, row by row;
                   its sd any expression that does not see f; a LogNormal of such a mu
`NormalGammaLeaf`  one Normal with ``mu`` and ``tau`` the two outputs of the tree
`DirichletLeaf`    one Categorical with ``p`` the output of the tree, or for two classes one
                   Bernoulli with ``p`` its second column
any                no term at all: the prior
================== ==========================================================================

`contract` (what is asked of such a likelihood, and `LIKELIHOODS`, the table of them), `columns`
(one output in a graph), `normal`, `normal_gamma`, `dirichlet`, `recognise` (which
of them a model has), `target` (its numbers at a point). `contract.register_likelihood` adds one,
from this package or not.
"""

from pymc_trees.targets.conjugate import dirichlet, normal, normal_gamma

__all__ = ["dirichlet", "normal", "normal_gamma"]
