"""How do partial trees grow?

Reading order: `particles` (the arrays), `proposals`, `optimal` and `cut_in_interval` (how a node
is expanded), `split_ahead` (by the optimal proposal), `growth` (one particle by one node),
`generation` (all particles), `weights`, `resampling` (given a reference), `planting` (a particle
becomes a tree).
"""
