"""How are whole posteriors inferred outside of `pm.sample`, or of its process?

`chains` (of `pm.sample`, by joblib), `dcc` (DCC-Tree), `rjhmc` (jumps between topologies
of a soft tree, for a step), `tree_smc` (top-down SMC), `sharded` (rows on several
machines); `recorded` (variables of a model at points).

May import: `core`, `distributions`, `targets`, `processes`; PyMC, joblib.
"""
