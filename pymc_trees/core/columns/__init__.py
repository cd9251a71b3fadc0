"""What do kernels read of the training inputs, and which way does a rule send a row?

Reading order: `design` (columns of numbers), `mixed` (with levels or missing cells), `rules` (draws
of rules and their densities), `row_index`, `row_set` and `set_range` (rows of a node as bits),
`set_rules` (the rules of such rows), `steps` (a rule that moves a little), `alike` (cuts that part
rows alike), `gaps` and `joint_levels` (what keeps blocks of rows together), `blocks` (rules that
cut no block), `table_file` (inputs that lie in a file).

May import: `core.compile`, `core.random`.
"""
