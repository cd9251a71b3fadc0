"""How does a forest enter a PyMC model? As a random variable whose value is the encoded trees.

Reading order: `leaves` (leaf priors by name), `data` (frames and arrays in), `capacity` (room for
nodes), `declaration` (checked settings), `forest_rv` (the variable and its prior draw),
`forest_logp` (its log-probability), `evaluation` (the function of X), `forest`, `bart`,
`decision_tree` (front-ends).

May import: `core`; PyMC, PyTensor.
"""
