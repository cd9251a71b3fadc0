"""How is the posterior of a forest explored? Whole sweeps over all trees, and prior draws.

`prior_draw` (a forest from its prior); `metropolis` (sweeps of local moves); `particles` (partial
trees that grow side by side); `particle_gibbs` (trees redrawn given the others); `smc` (one tree
from nothing, with its evidence); `split_weights` (Dirichlet split weights given the trees);
`slice_draw` (of one number); `exchange` (trees of two posteriors change places); `outcome` (what a
sweep leaves behind).

May import: all of `core` but `soft` and `mondrian`.
"""
