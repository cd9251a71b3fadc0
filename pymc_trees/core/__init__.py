"""Tree kernels on flat arrays: numpy and numba only, no PyMC, no plotting, no data frames.

Reading order: `forest` (what a tree is), `priors` (p(tree)), `leaves` (p(y | leaf)),
`moves` (one change of one tree), `samplers` (whole sweeps).
"""
