"""Comparison of ``pymc_trees`` with other implementations of BART."""
