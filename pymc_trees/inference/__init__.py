"""How are whole posteriors sampled without `pm.sample`, or outside its process?

`chains` (those of `pm.sample`, by joblib), `tree_smc` (top-down SMC), `results` (results as those
of `pm.sample`). DCC-Tree and sharded forests have wings of their own.

May import: `core`, `distributions`, `targets`, `processes`; PyMC, joblib.
"""
