"""How probable are the rows of a leaf, with the leaf's value integrated out?

Reading order: `contract` (what every leaf model answers), `outputs` (what leaves return at the
rows), `sums` (models made from what one row adds); one model each, a NamedTuple of
numbers and data whose *type* chooses the kernels: `normal` (with `normal_sets` and `masked`, for
rows kept as bits, `threaded`, for very many rows, and `latent`, for rows that are Gaussian given
latent variables),
`normal_gamma`, `dirichlet`; `normal_vector` (the prior of K values); `coefficients` (values that
are coefficients of regressors), with `path` (the columns that the splits above a leaf used);
`nonconjugate` (models whose values do not integrate out).

May import: `core.columns`, `core.forest`.
"""
