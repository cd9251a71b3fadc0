"""What is a forest? Flat arrays, and the float array a PyMC variable holds.

Reading order: `fields` (specification of the encoded value), `design` (the training columns),
`trees` (the working arrays), `rows` (which rows reach a node), `edit` (split and join),
`seal` (the value's checksum), `encode` (arrays to value and back), `summary` (what the prior
needs of a value), `evaluate` (the function of x), `check` (invariants), `text` (for people).

May import: numpy, numba.
"""
