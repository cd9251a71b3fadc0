"""How do chains of `pm.sample` run in processes chosen by joblib?

`sample_chains` and `resume` (the calls), `runner` (all chains of a run, piece by piece, and
handling of failures), `tries` (distribution, repeated if a process ends), `task` (a piece of a
chain in its own process), `checkpoint` (the file that is written between pieces), `left` (the end
states of chains, in the draws), `same_model` (whether they belong to a model), `states` (of step
methods, as arrays and text).

May import: `core`, `distributions`, `processes`, `posterior` (to save); PyMC, joblib.
"""
