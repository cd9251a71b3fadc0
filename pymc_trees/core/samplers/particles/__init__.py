"""How do partial trees grow?

Reading order: `particles` (the arrays), `proposals`, `optimal` and `cut_in_interval` (how a node is
expanded), `growth` (one particle by one node), `weights`, `resampling` (given a reference).
"""
