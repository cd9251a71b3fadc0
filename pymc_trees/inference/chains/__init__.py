"""How do chains of `pm.sample` run in processes chosen by joblib?

`sample_chains` and `resume` (the calls), `runner` (all chains of a run, piece by piece, and
handling of failures), `task` (a piece of a chain in its own process, repeated if that ends),
`checkpoint` (the file that is written between pieces), `states` (of step methods, as arrays and
text, and the end states of chains in the draws).

May import: `core`, `distributions`, `processes`, `posterior` (to save); PyMC, joblib.
"""
