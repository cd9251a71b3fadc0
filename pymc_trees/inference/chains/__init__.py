"""How do chains of `pm.sample` run wherever joblib puts them?

`sample_chains` and `resume` (the calls), `runner` (chains given out, and what becomes of those that
fail), `task` (one chain in a process of its own), `left` (where chains stopped, in the draws),
`states` (of step methods, as arrays and text).

May import: `core`; PyMC, joblib.
"""
