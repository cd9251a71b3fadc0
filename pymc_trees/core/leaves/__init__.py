"""How probable are the rows of a leaf, with the leaf's value integrated out?

Reading order: `contract` (the interface of a leaf model), `outputs` (outputs of leaves at the
rows), `sums` (models defined by the contribution of one row); one model per file, a NamedTuple of
numbers and data whose *type* selects the kernels: `normal` (with `masked`, for rows stored as bits,
`threaded`, for very many rows, and `latent`, for rows that are Gaussian given latent variables),
`normal_gamma`, `dirichlet`; `normal_vector` (the prior of K values); `coefficients` (values that
are coefficients of regressors), with `path` (the columns that the splits above a leaf used);
`nonconjugate` (models whose values do not integrate out).

May import: `core.columns`, `core.forest`.
"""
