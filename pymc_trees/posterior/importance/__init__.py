"""Which columns does f need, and which does the response?

Not shares of columns in what f says (`explain`), but how much is lost without a column: `marginal`
(f when only some columns are known), `submodels` (how well f follows from few columns)
and `hand_over` (`vi_to_kulprit`, for another package), `permutation` (what is lost when a column is
shuffled), `selection` (columns that are split more often than for responses that have nothing to do
with them).

May import: `core`, `distributions`, `posterior.check`, `posterior.reading`, `posterior.inclusion`,
`processes`.
"""
