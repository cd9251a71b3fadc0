"""How do forests move under `pm.sample`? PyMC step methods: unpack, one core call, pack.

Reading order: `base` (what all steps share), `sweep` (a cycle of `parts`), the steps made of them
`cgm` (`GrowPrune` and `RestructureCGM` too), `particle_gibbs` and `hybrid`, `tempering` (around one
of these), `split_weights` (Dirichlet split weights), `noise_scale` (the sd of the noise),
`soft_cgm` (sums of soft trees), `dcc_tree` and `rjhmc` (soft trees).

May import: `core`, `distributions`, `targets`, `inference`, `dcc`; PyMC.
"""
