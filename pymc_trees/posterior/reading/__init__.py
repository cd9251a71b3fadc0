"""What do draws hold? Functions of rows, trees, and columns by name.

`given` (draws as users have them, and keywords of pymc-bart), `expressions` (of trees and other
variables, at any rows, also with columns held, draw by draw), `rows_apart` (whether an expression
is a function of single rows), `functions` (f: those of trees, by name), `forests` (the encoded
trees of one forest), `features` (columns by name, and grids of their values), `draw_by_draw` (work
in threads, with a progress bar).

May import: `core`, `distributions`, `targets`, `posterior.check_draws`; xarray, PyMC.
"""
