"""What is the value of the PyMC variable? A forest encoded as one float array.

Reading order: `fields` (its specification), `checksum`, `encode` (working arrays to value and
back), `summary` (statistics for the prior), `evaluate` (the function of x), `known` (functions that
this process knows already), `marginal` (the function if only some columns are known), `walk` (node
by node, for checks), `text` (readable trees) with the numbers of `digits`.

May import: `core.columns`, `core.forest`, and the contracts of `core.leaves` and `core.priors`.
"""
