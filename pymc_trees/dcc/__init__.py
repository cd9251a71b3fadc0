"""DCC-Tree and RJHMC: one soft tree whose topology is unknown. A wing of its own.

Reading order: `soft_ops` (gates as differentiable Ops), `soft_graph` (a model with a soft tree,
read), `soft_posterior` (its compiled
functions), `nuts`, `neighbours` (topologies that differ by one split), then DCC-Tree: `settings`,
`local` (chains of one topology), `evidence` (by LAIS), `search` (which topology is next), `dcc`
(algorithm 1), `sample_dcc`; and RJHMC: `bridge` (from one density to another), `jump_posterior`,
`jump_chain`.

May import: `core`, `distributions`, `targets`, `inference`, `processes`; PyMC, PyTensor.
"""
