"""Chains against exact laws.

`exact` compares a chain of one tree with the listed posterior, `prior` with its prior,
`likelihoods` holds models whose leaf values do not integrate out, with their exact laws; `ratios`
has what a move accepts by, and `mistaken_moves` moves that are to be found out.
"""
