"""What does a PyMC variable hold? A forest encoded as one float array.

Reading order: `fields` (its specification), `checksum`, `encode` (working arrays to value and
back), `summary` (what the prior needs of a value), `evaluate` (the function of x), `marginal` (the
same when only some columns are known), `walk` (node by node, slowly), `text` (for people) with the
numbers of `digits`.

May import: `core.columns`, `core.forest`, and the contracts of `core.leaves` and `core.priors`.
"""
