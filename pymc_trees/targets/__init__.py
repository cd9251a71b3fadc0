"""Which likelihood does a forest have? Read from the model's graph, never by probing numbers.

Reading order: `graph` (the terms of a model that depend on a forest, and errors), `settings` (of
the prior, and other expressions, at a point), `contract` (the interface of a target), `terms` (the
summands of a log-likelihood), `rows` (summands of single rows), `native` (graphs as functions that
kernels call), `likelihoods` (those that are recognised, a family in each file), `leaf_rows` (how
leaves read Gaussian rows); `conjugate` (leaf values integrate out, perhaps given latent variables
of the rows), `rowwise` (any product over rows), `separate` (the same of hurdles and trees of two
outputs), `shares` (proportions in mixtures that are expressions), `strata` (rows that share sums,
which `log_sums` reads, with `data_signs`) and `joint` (any other likelihood); `choose` (the target
of a forest, also where a likelihood sees one function of several outputs), `noise` (what enters the
sd of Normal rows alone), `latent_normals` (entries of MvNormal rows that are not observed, and
their limits), `latent_columns` (random columns of X: their priors, and all that depends on them),
`affine` (linear maps in a graph), `ridges` (what moves together while no row's likelihood changes),
`lift` (a number added to a forest), `forest_state`, `referenced_state` (with random columns) and
`soft_forest_state` (working arrays of a forest between two steps).

May import: `core`, `distributions`; PyMC, PyTensor.
"""
