"""What is a step made of? Updates of a forest, each of which leaves the posterior invariant.

Reading order: `contract` (what a part answers), `local_moves` (sweeps of Metropolis moves)
with `screening` (what they learn in tuning under a likelihood of rows),
`tree_redraw` (trees redrawn from the root), `learnt` (how much of a step goes to these, as tuning
finds), `tempering` (flatter posteriors beside a forest) by a
`ladder`; `soft_moves` (sweeps over soft trees); `moves` (what these and `local_moves` share);
`nuisances` (a likelihood's own parameters, drawn
between sweeps); `joint` (which variables move together with a soft tree).

May import: as `step_methods`.
"""
