"""How do kernels read the training inputs, and which way does a rule send a row?

Reading order: `design` (columns of numbers), `mixed` (with levels or missing cells), `rules` (draws
of rules and their densities), `row_index`, `row_set` and `set_range` (rows of a node as bits),
`set_rules` (rules for such rows), `steps` (small changes of a rule), `alike` (cuts that give the
same partition), `gaps` and `joint_levels` (rules that keep blocks of rows together), `blocks`
(rules that cut no block), `table_file` (inputs stored in a file).

May import: `core.compile`, `core.random`.
"""
