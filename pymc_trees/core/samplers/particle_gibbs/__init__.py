"""Redrawn trees: `conditional_smc` (one), `surrogate` (any likelihood), `sweep` (all)."""
