"""How are whole posteriors inferred outside of `pm.sample`, or of its process?

`chains` (of `pm.sample`, by joblib), `dcc` (DCC-Tree), `tree_smc` (top-down SMC); `processes`
(where their parts run), `recorded` (variables of a model at points).

May import: `core`, `distributions`, `targets`; PyMC, joblib.
"""
