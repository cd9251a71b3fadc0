"""How do forests move under `pm.sample`? PyMC step methods: unpack, one core call, pack.

Reading order: `sweep` (a step from the point to its new point, by a cycle of `kernels`),
`variables` (which forests a step moves), the steps made of kernels: `cgm` (`GrowPrune` and
`RestructureCGM` too), `particle_gibbs`, `hybrid`, `tempering` (around one of these) and `soft_cgm`
(sums of soft trees); `ridge_moves` (the level of a forest and what it trades places with,
at the end of a step); `variable_step` (what the steps of other variables
share): `split_weights` (Dirichlet split weights), `noise_scale` (what makes
up the sd of the noise), `latent_normals` (entries of normal rows that are not observed),
`latent_column` (random columns of X).

May import: `core`, `distributions`, `targets`, `inference`; PyMC.
"""
