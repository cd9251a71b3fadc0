"""How are whole posteriors inferred outside of `pm.sample`?

DCC-Tree, in reading order: `soft_model` (what is read off a model, and refused), `soft_graph`
(log-densities of any topology), `soft_posterior` (the same compiled), `nuts` (the one file that
drives PyMC's NUTS), `local` (chains of a topology), `runner` (in which process), `dcc` (global
iterations, the combined posterior), `settings`, `interrupts`, `sample_dcc` (the public face).

Top-down SMC: `tree_model` (what is read off a model, and refused), `tree_smc` (one island, as
numbers that any process can take), `islands` (how their draws become chains), `smc_statistics`,
`recorded` (variables at points; DCC-Tree's too), `sample_tree_smc` (the public face).

May import: `core`, `distributions`, `targets`, `step_methods`; PyMC, joblib.
"""
