"""Top-down SMC: `model` (read), `run` (one island), `islands`, `statistics`, `sample_tree_smc`."""
