"""Slow twins of the kernels in plain Python, and the Monte Carlo error of a chain's averages.

`batches` measures how far a chain's frequencies are from exact probabilities, `laws` holds exact
posteriors and deliberately wrong ones, `slow` does what the kernels do with nested tuples.
Nothing here calls a kernel of pymc_trees.
"""
