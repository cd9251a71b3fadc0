"""How do chains of `pm.sample` run wherever joblib puts them?

`sample_chains` and `resume` (the calls), `runner` (all chains of a run, piece by piece, and what
becomes of those that fail), `tries` (given out, and again when a process ends), `task` (a piece of
a chain in a process of its own), `checkpoint` (the file that is written between pieces), `left`
(where chains stopped, in the draws), `states` (of step methods, as arrays and text).

May import: `core`, `processes`, `posterior` (to save); PyMC, joblib.
"""
