"""Redrawn trees: `conditional_smc` (one), `sweep` (all), `surrogate_sweep` (any likelihood)."""
