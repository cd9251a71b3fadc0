"""What is a soft tree? Its topology, its gates, and its value, without PyMC.

Reading order: `topology` (labels, prior, maximal number of nodes), `gates` (the probability of each
leaf, and its gradient; unconstrained coordinates), `encode` (the value of the random variable, and
draws from the prior).

May import: `core`; numpy, numba.
"""
