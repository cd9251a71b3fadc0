"""Redrawn trees: `conditional_smc` (one), `surrogate` (any likelihood), `sweep` (all).

`by_address` says how the sweep calls models.
"""
