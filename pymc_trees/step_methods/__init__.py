"""How do forests move under `pm.sample`? PyMC step methods: unpack, one core call, pack.

Reading order: `base` (what all steps share), `sweep` (what all samplers share), `metropolis`
(sweeps of Metropolis moves), `cgm`, `grow_prune` (its two public faces), `tree_redraw` (trees
redrawn from the root), `particle_gibbs` and `hybrid` (its public faces, alone and between local
moves), `split_weights` (Dirichlet split weights), `dcc_tree` (soft trees).

May import: `core`, `distributions`, `targets`, `inference`; PyMC.
"""
