"""How probable are the rows of a leaf, with the leaf's value integrated out?

Reading order: `contract` (the interface of a leaf model, and models defined by the contribution of
one row). Then one model per file, a NamedTuple of settings and data whose *type* selects the
kernels: `normal` (with `threaded`, for very many rows, and `latent`, for rows that are Gaussian
given latent variables), `normal_gamma`, `dirichlet`, `coefficients` (of regressors), with `path`
(the columns of the splits above a leaf), `correlated` (several values, rows of several outputs),
`vector_lines` (of several outputs), and `nonconjugate` (values that do not integrate out).

May import: `core.columns`, `core.forest`.
"""
