"""Which likelihoods integrate a leaf's values out? One file for each leaf.

================== ==========================================================================
leaf               likelihood
================== ==========================================================================
`NormalLeaf`       one Normal whose mean is f, or a multiple of f plus other terms, row by row;
                   its sd any expression that does not see f; a LogNormal of such a mu
K outputs          one Normal whose mean is a sum of the outputs of the row, each times anything
                   that does not see them, plus other terms; a `BasisLeaf` is one of these
`LinearLeaf`       as for a `NormalLeaf`
`NormalGammaLeaf`  one Normal with ``mu`` and ``tau`` the two outputs of the tree
`DirichletLeaf`    one Categorical with ``p`` the output of the tree, or for two classes one
                   Bernoulli with ``p`` its second column
any                no term at all: the prior
================== ==========================================================================

`contract` (the interface of such a likelihood, and `LIKELIHOODS`, the table of them), `columns`
(one output in a graph), `combination` (all outputs of a row), `normal`, `linear`, `normal_vector`,
`normal_gamma`, `dirichlet`, `recognise` (the one that a model has), `target` (its numbers at a
point). `contract.register_likelihood` adds one, from this package or another.
"""

from pymc_trees.targets.conjugate import dirichlet, linear, normal, normal_gamma, normal_vector

__all__ = ["dirichlet", "linear", "normal", "normal_gamma", "normal_vector"]
