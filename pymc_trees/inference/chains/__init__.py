"""How do chains of `pm.sample` run wherever joblib puts them?

`sample_chains` (the call), `runner` (chains given out, and what becomes of those that fail), `task`
(one chain in a process of its own).

May import: `core`; PyMC, joblib.
"""
