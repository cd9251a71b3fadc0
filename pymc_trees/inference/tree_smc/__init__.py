"""Top-down SMC: `sample_tree_smc` (the call: model, islands, results), `island` (one run)."""
