"""Tree kernels on flat arrays: numpy and numba only, no PyMC, no plotting, no data frames.

Reading order: `compile` (how kernels are compiled), `random` (decisions), `columns` (the training
columns), `forest` (working arrays), `priors` (p(tree)), `leaves` (p(y | leaf)), `order` (leaf
values that must keep one), `value` (the encoded forest), `explain` (shares of columns),
`histograms` (what cuts would gain), `moves` (one change of one tree), `samplers` (whole sweeps);
`shards` (a forest whose rows are elsewhere), `soft`, `soft_forest` (sums of soft trees) and
`mondrian`, which stand beside them; `interrupts` (ctrl-C waits for compiled code).
"""
