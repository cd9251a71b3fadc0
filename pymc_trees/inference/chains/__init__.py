"""How do chains of `pm.sample` run wherever joblib puts them?

`sample_chains` and `resume` (the calls), `runner` (all chains of a run, and what becomes of those
that fail), `tries` (given out, and again when a process ends), `task` (one chain in a process of
its own), `left` (where chains stopped, in the draws), `states` (of step methods, as arrays and
text).

May import: `core`, `processes`; PyMC, joblib.
"""
