"""Top-down SMC: `model` (read), `run` (one island), `sample_tree_smc` (the call, its results)."""
