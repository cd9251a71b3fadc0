"""How are whole posteriors inferred outside of `pm.sample`?

`dcc` (DCC-Tree), `tree_smc` (top-down SMC); `processes` (where their parts run), `recorded`
(variables of a model at points).

May import: `core`, `distributions`, `targets`; PyMC, joblib.
"""
