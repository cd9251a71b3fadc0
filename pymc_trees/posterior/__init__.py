"""What do the draws say? From draws to numbers.

`check` (whether draws can predict) and `reading` (f at any rows, the trees, columns by name), on
which the answers rest, a question in each file: `dependence` (partial dependence),
`accumulated_effects` by `local_steps`, `comparisons` (predictions, contrasts) and `slopes`,
`explain` (shares of columns: Shapley values, Sobol indices, H statistics), `inclusion` (splits
counted by column), `importance` (what is lost without a column), `trees` (in words, and which are
probable), `convergence` (whether chains agree about f). `saving` writes draws to a file.

May import: `core`, `distributions`, `targets`; xarray, ArviZ, PyMC.
"""
