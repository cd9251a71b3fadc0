"""Leaves whose values are coefficients of regressors, integrated out.

`posterior` (coefficients given the rows of a leaf); `basis` (of given columns of the rows),
`linear` (of the columns that the splits above a leaf used).

May import: what `core.leaves` may, and its `contract`, `sums`, `normal`.
"""
