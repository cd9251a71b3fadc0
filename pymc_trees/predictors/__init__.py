"""How does a fitted forest predict where nothing but numpy is installed?

Reading order: `columns` and `rows` (rows as users give them, as matrices),
`packed` (the trees of all draws in ragged arrays), `hard` and `soft` (their functions of rows),
`mondrian` (trees of Mondrian forests), `special` (the error function), `program` (expressions of
trees and of other variables, for all draws at once), `integration` (means over laws of columns),
`random_columns` (rows that lack random columns), `evaluation` (values of expressions, some rows at
a time), `laws` (distributions of a new observation, and summaries over draws), `curves` (survival),
`file` (named arrays in one file, checked), `elsewhere` (ONNX, JSON, SQL), `predictor`
(`Predictor`), `load`.
`posterior.exporting` makes predictors of draws and a model.

May import: numpy and the standard library, constants of `core`. In functions: xarray for labelled
results, onnx, and the progress bar.
"""
