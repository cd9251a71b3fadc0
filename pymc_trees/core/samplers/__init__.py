"""How is the posterior of a forest explored? Whole sweeps over all trees, and prior draws.

Reading order: `prior_draw` (a forest from its prior), `metropolis` (one move on one tree),
`backfitting` (one sweep over all trees).

May import: all of `core` but `soft` and `mondrian`.
"""
