"""How do chains of `pm.sample` run in processes chosen by joblib?

`lengths` (of chains, by the size of a table), `sample` (`sample_chains` and `resume`), `until`
(chains that go on until they have reached what is asked of them), `update` (chains of other rows
that start from the trees of a fit), `run` (all chains of a run, piece by piece, each piece in its
own process, and again if that process ends), `states` (states of step methods as numbers and text,
end states of chains, and the checkpoint that is written between pieces).

May import: `core`, `distributions`, `processes`, `posterior` (to save, to judge); PyMC, joblib.
"""
