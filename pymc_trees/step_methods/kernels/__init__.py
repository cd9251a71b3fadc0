"""What are steps made of? Kernels: updates of a forest that leave its posterior invariant.

Reading order: `contract` (the interface of a kernel), `acceptance` (accepted moves, and weights
that follow them), `local_moves` (sweeps of Metropolis moves) with `delayed_acceptance` (under any
likelihood of rows), `tree_redraw` (trees redrawn from the root), `replica_exchange` (parallel
tempering), `likelihood_parameters` (a likelihood's own
parameters, drawn between sweeps).

May import: as `step_methods`.
"""
