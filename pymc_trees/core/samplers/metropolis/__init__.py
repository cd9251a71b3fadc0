"""How do trees move by small steps?

Reading order: `one_move`, `backfitting` (all trees), `screened_sweep` (rows of any likelihood),
`joint_sweep` (a likelihood of all rows together).
"""
