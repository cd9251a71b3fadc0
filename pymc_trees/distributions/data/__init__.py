"""How do data enter? From frames and arrays to numbers, and back to names.

`variables` (`Data`, `set_data`, declarations that fail), `encoding` (frames to numbers; large
tables, read by rows and kept in a file), `levels` (codes of text and categories), `schema` (what is
known of the columns), `named` (dimensions with names), `numbers` (what counts as one).

May import: `core`; PyMC, PyTensor.
"""
