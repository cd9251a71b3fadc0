"""How do kernels read the training inputs, and which way does a rule send a row?

Reading order: `cells` (numbers that stand for missing cells), `design` (columns of numbers),
`mixed` (with levels or missing cells), `row_set` (rows of a node as bits, and an index of all
rows), `rules` (draws of rules and their densities, given a list of rows or such bits), `steps`
(small changes of a rule, cuts that give the same partition), `blocks` (rules that cut no block of
rows), `search` (numbers among cuts), `reference` (rows whose cells move, and those on which rules
rest), `table_file` (inputs stored in a file).

May import: `core.compile`, `core.random`.
"""
