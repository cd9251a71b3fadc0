"""What do draws hold? Functions of rows, trees, and columns by name.

`functions` (f at any rows, draw by draw), `forests` (the encoded trees of one forest), `features`
(columns by name, and grids of their values), `draw_by_draw` (work in threads, with a progress bar).

May import: `core`, `distributions`, `check`; xarray, PyMC.
"""
