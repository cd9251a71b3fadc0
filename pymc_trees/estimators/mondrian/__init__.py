"""How are Mondrian forests used from scikit-learn?

Reading order: `checks` (settings), `inputs` (what is let in as X and y), `grown` (a fitted forest),
`forest` (what both estimators share: leaves, paths), `classes`, `probabilities` (of classes),
`classifier`, `hyperparameters` (of the hierarchical Gaussian prior), `predictive` (mixtures over a
forest), `regressor`, `draws` (ArviZ data).

May import: `core.mondrian`, scikit-learn and ArviZ; nothing else of the package.
"""
