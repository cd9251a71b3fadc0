"""Which likelihood does a forest see? Read from the model's graph, never by probing numbers.

Reading order: `graph` (the terms that depend on a forest, with its outputs as an input),
`affine` (how a term depends on them), `conjugate` (the likelihoods whose leaf values integrate
out), `compiled` (numbers of the target at a point).

May import: `core`, `distributions`; PyMC, PyTensor.
"""
