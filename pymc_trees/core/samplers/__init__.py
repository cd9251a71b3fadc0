"""How is the posterior of a forest explored? Whole sweeps over all trees, and prior draws.

`prior_draw` (a forest from its prior); `metropolis` (sweeps of local moves); `particles` (partial
trees, grown in parallel); `particle_gibbs` (trees redrawn given the others); `smc` (one tree from
the root, with its evidence); `split_weights` (Dirichlet split weights given the trees);
`slice_draw` (of one number); `exchange` (exchanges of trees between two posteriors); `outcome`
(state after a sweep).

May import: all of `core` but `soft` and `mondrian`.
"""
