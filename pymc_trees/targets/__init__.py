"""Which likelihood does a forest have? Read from the model's graph, never by probing numbers.

Reading order: `contract` (the interface of a target), `errors`, `graph` (the terms that depend on a
forest, with its outputs as an input), `parameters` (of a random variable), `random_likelihood`
(those that are refused), `settings` (of the prior, and other numbers, at a point), `affine` (how a
term depends on the outputs), `stacks` (one of several outputs), `conjugate` (likelihoods under
which leaf values integrate out, one file per leaf), `latent` (likelihoods for which they do given
latent variables of the rows); for any other likelihood `terms` (its summands), `rowwise` (a term as
a function of some rows), `laws` (hand-written common ones), `native` (graphs as functions that
kernels call) with `special` (code for Ops that have none), `slopes` (their derivatives), `joint`
(all rows together) with `cut` (subexpressions that do not depend on the outputs); `choose` (the
target of a forest), `forest_state` and `soft_forest_state` (working arrays of a forest between two
steps); `noise` (variables that only scale the noise around forests) with `noise_density` (given a
sum of squares), `nuisance` (other parameters of a likelihood, and their densities given forests).

May import: `core`, `distributions`; PyMC, PyTensor.
"""
