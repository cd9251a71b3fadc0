"""What is a soft tree, and how are its topologies found and weighed? DCC-Tree without PyMC.

Reading order: `topology` (labels, prior), `capacity` (room for nodes), `gates` (the probability of
each leaf, and its gradient), `encode` (the value of the random variable), `neighbours` (one split
less or more, and proposals), `jumps` (between two that differ so, as a chain makes them), `bridge`
(what such a jump weighs), `utility` (which topology next), `search` (which topologies are known
and active), `prior_draw`, `covariance`, `mixture`, `evidence` (layered adaptive importance
sampling).

May import: numpy, numba.
"""
