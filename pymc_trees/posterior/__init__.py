"""What do the draws say? From draws to numbers.

`functions` (f at any rows, draw by draw) and `features` (columns by name, and grids of their
values), on which `dependence` (partial dependence), `accumulated_effects` and `comparisons`
(predictions, contrasts, slopes) rest; `check_draws` (whether draws are complete enough to
predict), `forest_differences` and `soft_differences` (in what their model differs from the one at
hand), `alterations` (what saving or editing leaves in any draws).

May import: `core.forest`, `distributions`; xarray, ArviZ, PyMC.
"""
