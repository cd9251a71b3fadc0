"""How are Mondrian forests used from scikit-learn?

Reading order: `checks` (settings), `inputs` (what is let in as X and y), `rows` (what has been
seen, and its scale), `threads`, `grown` (a fitted forest: its trees, and how all of them take in
rows), `forest` (what both estimators share: leaves, paths), `classes`, `classifier`,
`hyperparameters` (of the hierarchical Gaussian prior), `predictive` (mixtures over a forest),
`regressor`, `draws` (ArviZ data).

May import: `core.mondrian`, scikit-learn and ArviZ; nothing else of the package.
"""
