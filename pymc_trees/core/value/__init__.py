"""What is the value of the PyMC variable? A forest encoded as one float array.

Reading order: `fields` (its specification and checksum), `encode` (working arrays to value and
back), `adopt` (trees of other rows, made valid for these), `summary` (statistics for the prior),
`evaluate` (the function of x, also if only some columns are known; outputs at the training rows
that this process has computed), `mixtures` (of Normals, one for each interval of a random column:
densities and quantiles), `text` (readable trees and numbers; node by node, for checks).

May import: `core.columns`, `core.forest`, and the contracts of `core.leaves` and `core.priors`.
"""
