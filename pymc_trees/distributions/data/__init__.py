"""How do data enter? From frames and arrays to numbers, and back to names.

`variables` (`Data`, `set_data`), `encoding` (frames to numbers), `columns` (one column of a frame),
`levels` (codes of text and categories), `schema` (what is known of the columns), `named`
(dimensions with names), `numbers` (what counts as one), `large` (tables that are read by rows and
kept in a file), `undo` (a declaration that fails leaves the model as it was).

May import: `core`; PyMC, PyTensor.
"""
