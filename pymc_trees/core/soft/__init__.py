"""What is a soft tree, and how are its topologies found and weighted? DCC-Tree without PyMC.

Reading order: `topology` (labels, prior), `capacity` (maximal number of nodes), `gates` (the
probability of each leaf, and its gradient), `coordinates` (unconstrained ones of the gates),
`encode` (the value of the random variable), `neighbours` (one split less or more, and proposals),
`jumps` (reversible jumps between such topologies), `bridge` (annealed importance weight of a jump),
`utility` (choice of the next topology), `search` (known and active topologies), `prior_draw`,
`covariance`, `mixture`, `evidence` (layered adaptive importance sampling).

May import: numpy, numba.
"""
