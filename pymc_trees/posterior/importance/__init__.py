"""Which columns does f need, and which does the response?

Not the contributions of columns to f (`explain`), but how much is lost without a column:
`submodels` (how well few columns predict f; `vi_to_kulprit` for another package), `permutation`
(what is lost when a column is shuffled), `selection` (columns that are split more often than under
permuted responses).

May import: `core`, `distributions`, `posterior.draws`, `posterior.reading`,
`posterior.inclusion`, `processes`.
"""
