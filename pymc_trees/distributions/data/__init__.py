"""How do data enter? As one table of numbers that knows what its columns are.

`table` (`read`: arrays, frames and model data to a `Table`; new rows; large tables, kept in a
file), `schema` (names, levels and split rules of columns, and codes of levels), `variables`
(`Data`, `set_data`, declarations that fail), `random_columns` (`with_columns`), `named` (named
dimensions), `numbers` (which values are real numbers).

May import: `core`; PyMC, PyTensor.
"""
