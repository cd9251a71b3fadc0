"""What do draws hold? Functions of rows, trees, and columns by name.

`functions` (expressions of trees and other variables, by name, at any rows, also with columns held,
draw by draw), `whole` (the same of model data beside X, and of other groups), `marginal` (the same
with random columns integrated out where rows lack them: `random_inputs`, `column_laws` and
`integral`, that of one draw), `table` (X and such data as the columns of one table), `rowwise`
(whether an expression is a function of single rows), `forests` (the encoded trees of one forest),
`features` (columns by name, grids of their values, and keywords of pymc-bart), `indices` (whether
what is picked by an index exists).

May import: `core`, `distributions`, `targets`, `posterior.draws`; xarray, PyMC.
"""
