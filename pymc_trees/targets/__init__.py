"""Which likelihood does a forest see? Read from the model's graph, never by probing numbers.

Reading order: `contract` (what every target answers), `errors`, `graph` (the terms that depend on a
forest, with its outputs as an input), `settings` (of the prior, and other numbers, at a point),
`affine` (how a term depends on the outputs), `stacks` (one of several outputs), `conjugate` (the
likelihoods whose leaf values integrate out, one file for each leaf), `latent` (those that do given
latent variables of the rows); for any other likelihood `terms` (its summands), `rowwise` (a term as
a function of some rows), `laws` (common ones, written out), `native` (graphs as functions that
kernels call) with `special` (code for Ops that have none), `slopes` (their derivatives), `joint`
(all rows together) with `cut` (what does not change with the outputs); `choose` (which of them a
forest has), `forest_state` and `soft_forest_state` (working arrays of a forest between two steps),
`known_outputs` (which other steps may ask these for); `noise` (which variables scale the noise
around forests and do nothing else) with `noise_density` (given a sum of squares),
`nuisance` (which enter a likelihood beside forests, and their densities given these).

May import: `core`, `distributions`; PyMC, PyTensor.
"""
