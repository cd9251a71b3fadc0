"""Which likelihood does a forest see? Read from the model's graph, never by probing numbers.

Reading order: `graph` (the terms that depend on a forest, with its outputs as an input),
`affine` (how a term depends on them), `conjugate` (the likelihoods whose leaf values integrate
out), `compiled` (their numbers at a point); for any other likelihood `terms` (its summands),
`rowwise` and `row_ops` (a term as a function of some rows), `native` (graphs as functions that
kernels call), `slopes` (their derivatives), `laplace` and `whole` (their numbers at a point);
`choose` (which of them a forest has).

May import: `core`, `distributions`; PyMC, PyTensor.
"""
