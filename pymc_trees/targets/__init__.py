"""Which likelihood does a forest have? Read from the model's graph, never by probing numbers.

Reading order: `contract` (the interface of a target), `errors`, `graph` (the terms that depend on a
forest, with its outputs as an input), `settings` (of the prior, and other numbers, at a point),
`affine` (how a term depends on the outputs), `stacks` (one of several outputs), `likelihoods`
(those that are recognised, a family in each file); `conjugate_target` (leaf values integrate out),
`latent_target` (they do given latent variables of the rows), `rowwise` (any product over rows) and
`joint` (any other) by `terms` (a likelihood's summands) and `native` (graphs as functions that
kernels call); `choose` (the target of a forest), `forest_state` and `soft_forest_state` (a forest
as steps see it, and its state between two steps); `noise` (variables that only scale the noise
around forests), `nuisance` (other parameters of a likelihood, and their densities given forests).

May import: `core`, `distributions`; PyMC, PyTensor.
"""
