"""How is the posterior of a forest explored? Whole sweeps over all trees, and prior draws.

`prior_draw` (a tree, or a whole forest, from its prior). Local moves: `backfitting` (all trees
once), `screened_sweep` (rows of any likelihood), `joint_sweep` (a likelihood of all rows together).
Partial trees that grow: `particles` (the arrays; weights, ancestors), `optimal` and `proposals`
(how a node is expanded), `growth` (one particle, or all, by a node); `particle_gibbs` (trees
redrawn given the others); `top_down` (one tree from the root, with its evidence). `split_weights`
(Dirichlet split weights given the trees), `slice_draw` (of one number), `exchange` (of trees
between two posteriors), `latent_normals` (entries of normal rows), `latent_column` (a random column
of X).

May import: all of `core` but `soft`.
"""
