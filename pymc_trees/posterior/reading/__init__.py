"""What do draws hold? Functions of rows, trees, and columns by name.

`given` (draws as users have them), `expressions` (of trees and other variables, at any rows, draw
by draw), `rows_apart` (whether an expression is a function of single rows), `functions` (f: those
of trees, by name), `held_rows` (rows with columns held), `forests` (the encoded trees of one
forest), `features` (columns by name, and grids of their values), `draw_by_draw` (work in threads,
with a progress bar), `renamed` (keywords of pymc-bart).

May import: `core`, `distributions`, `targets`, `check`; xarray, PyMC.
"""
