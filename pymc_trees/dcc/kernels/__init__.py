"""What is a soft tree? Its topology, its gates, and its value, without PyMC.

Reading order: `gates` (the probability of each leaf, and its gradient; unconstrained coordinates),
`encode` (labels, prior and maximal number of nodes of topologies; the value of the random variable,
and draws from the prior).

May import: `core`; numpy, numba.
"""
