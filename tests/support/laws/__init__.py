"""Chains against exact laws: the samplers of the tables in `tests/laws`, one function each.

Posteriors: `exact` compares a tree whose leaf values integrate out with the list of all trees,
`sums` sums of trees, `grid_step` a step of PyMC; `nonconjugate` holds samplers of other likelihoods
(those of `likelihoods`), `joint` those of all rows together, `outputs` those of several values a
leaf, `soft` soft trees, `mondrian` trees of a Mondrian process, `evidence` sequential Monte Carlo.
The prior: `prior`. Moves: `reversal` has what each accepts by, `bench` a tree and its slow twin,
`mistaken_moves` moves with a mistake.
"""
