"""Tree kernels on flat arrays: numpy and numba only, no PyMC, no plotting, no data frames.

Reading order: `compile` (how kernels are compiled), `random` (decisions), `columns` (the training
columns), `forest` (working arrays), `priors` (p(tree)), `leaves` (p(y | leaf)), `order` (ordered
leaf values), `value` (the encoded forest), `explain` (attributions to columns), `histograms` (gains
of cuts), `moves` (one change of one tree), `samplers` (whole sweeps); independent of these,
`soft_forest` (sums of soft trees); `interrupts` (ctrl-C waits for compiled code).
"""
