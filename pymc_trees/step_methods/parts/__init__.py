"""What are the parts of a step? Updates of a forest, each of which leaves the posterior invariant.

Reading order: `contract` (the interface of a part), `local_moves` (sweeps of Metropolis moves) with
`screening` (adaptation under a likelihood of rows), `tree_redraw` (trees redrawn from the root),
`learnt` (adapted shares of these), `flatter` (flatter posteriors) and `replicas` (whole steps for
each of them) with a `ladder`; `soft_moves` (sweeps over soft trees); `nuisances` (a likelihood's
own parameters, drawn between sweeps).

May import: as `step_methods`.
"""
