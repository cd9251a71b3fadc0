"""How does a fitted model become a `Predictor`? Draws, trees and expressions without the rows.

`trees` (encoded forests to ragged arrays), `expressions` (graphs of PyTensor to programs of
`predictors.program`), `responses` (which law an observed variable has), `predictor` (`predictor`).

May import: `predictors`, `posterior.reading`, `posterior.draws`, `distributions`, `core`; xarray,
PyMC.
"""
