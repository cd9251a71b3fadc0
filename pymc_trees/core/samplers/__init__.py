"""How is the posterior of a forest explored? Whole sweeps over all trees, and prior draws.

Reading order: `prior_draw` (a forest from its prior); `metropolis` (one move on one tree),
`backfitting` (one sweep over all trees), `whole_sweep` (the same where the likelihood is not a
product over rows), `outcome` (what a sweep leaves behind); `split_weights` (Dirichlet split weights
given the trees); for particles
`particles` (partial trees), `bins`, `proposals` and `optimal` (how a node is expanded),
`particle_growth` (one particle by one node), `weights`, `resampling`, `conditional_smc` (one tree),
`particle_sweep` (all trees), `guided_sweep` (the same where leaf values do not integrate out).

May import: all of `core` but `soft` and `mondrian`.
"""
