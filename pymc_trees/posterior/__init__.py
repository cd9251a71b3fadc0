"""What do the draws say? From draws to numbers.

`check_draws` (whether draws are complete enough to predict).

May import: `core.forest`, `distributions`; xarray, ArviZ, PyMC.
"""
