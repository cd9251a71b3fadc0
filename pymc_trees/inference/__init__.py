"""How are whole posteriors inferred outside of `pm.sample`, or of its process?

`chains` (of `pm.sample`, by joblib), `tree_smc` (top-down SMC); `recorded` (variables of a model at
points). DCC-Tree and sharded forests have wings of their own.

May import: `core`, `distributions`, `targets`, `processes`; PyMC, joblib.
"""
