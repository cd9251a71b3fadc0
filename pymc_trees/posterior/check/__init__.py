"""Can these draws predict? Whether they are complete, and those of this model.

`check_draws`; `check_model` (whether the model is one), `forest_differences`,
`soft_forest_differences` and `soft_differences` (in what their model differs from the one at hand),
`alterations` (what saving or editing leaves in any draws), `stored_draws` (draws that may lie in a
file, read once).

May import: `core`, `distributions`; xarray, PyMC.
"""
