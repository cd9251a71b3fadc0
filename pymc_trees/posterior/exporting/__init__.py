"""How does a fitted model become a `Predictor`? Draws, trees and expressions without the rows.

`expressions` (encoded forests to ragged arrays, which law an observed variable has, graphs of
PyTensor to programs of `predictors.program`), `facts` (tables and labels as JSON has them),
`random_columns` (laws of random columns of X), `predictor` (`predictor`).

May import: `predictors`, `posterior.reading`, `posterior.draws`, `distributions`, `core`; xarray,
PyMC.
"""
