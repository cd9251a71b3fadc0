"""What do the draws say? From draws to numbers.

`draws` (draws of trees and whether they can predict, `check_draws`) and `reading` (f at any rows,
the trees, columns by name), on which the answers rest, a question in each file: `dependence`
(partial dependence), `accumulated_effects`, `comparisons` (predictions, contrasts, slopes), `maps`
(predictions of many rows, in blocks), `forecasts` and `paths` (steps through time), `explain`
(shares of columns: Shapley values, Sobol indices, H statistics), `inclusion` (splits counted by
column), `importance` (what is lost without a column), `tree_text` (trees in words, and which are
probable), `convergence` (whether chains agree about f), `pool` (whether all chains together can be
used), `goals` (how far they are from what is asked), `diagnosis` (where they differ, in words).
`new_groups` completes draws of group effects for groups that were not seen; `declarations` keeps
with the draws what forests were declared with; `saving` writes draws to a file and reads them;
`exporting` makes predictors of them, which need no PyMC.

May import: `core`, `predictors`, `distributions`, `targets`; xarray, ArviZ, PyMC.
"""
